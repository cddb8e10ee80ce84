/// What warmroute-keys can do. Each gives back what the process ends with: 0, or 1 with a message on stderr.
#pragma once

#include "keys/arguments.hpp"

namespace warmroute::keys {

int init(const Arguments& arguments);
int issue(const Arguments& arguments);
int rotate(const Arguments& arguments);
int revoke(const Arguments& arguments);
int list(const Arguments& arguments);
int rollback(const Arguments& arguments);
int verify(const Arguments& arguments);

}  // namespace warmroute::keys
