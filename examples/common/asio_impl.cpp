// The non-template parts of Boost.Asio and Beast, compiled once for all examples.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
