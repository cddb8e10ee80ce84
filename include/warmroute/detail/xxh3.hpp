/// The one place that includes xxHash: header-only, no link dependency, no exported symbol.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
