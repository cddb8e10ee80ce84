/// Boost.Asio and Beast as the examples use them: C++20 coroutines, errors as values, one thread per io_context.
/// Their non-template parts are compiled once, in asio_impl.cpp.
#pragma once

#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace warmroute::examples {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;
template <class T>
using Awaitable = boost::asio::awaitable<T>;

/// The completion token of every asynchronous call here: `co_await socket.async_connect(to, into(error))` sets `error`,
/// never throws.
inline auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

}  // namespace warmroute::examples
