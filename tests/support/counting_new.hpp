// Counts what the program asks of operator new. Link support/counting_new.cpp into a test program of its own.
#pragma once

#include <cstddef>

namespace warmroute::test {

std::size_t allocations();  // calls of any operator new so far, all threads
std::size_t live_bytes();   // usable bytes that are out now
bool counts_malloc();       // what is called directly counts, too: OpenSSL's digests do

}  // namespace warmroute::test
