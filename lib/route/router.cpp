// The router's bodies, compiled once: files that link the library only declare them (the end of route/router.hpp).
#define WARMROUTE_ROUTER_BODY
#include "warmroute/route/detail/router_core.hpp"
