/* The header in two translation units of one program; inits.h has what each of them compiles. */
#include "warmroute.h"

uint32_t unit_one(void);
uint32_t unit_two(void);
int main(void) { return unit_one() == unit_two() && unit_one() > WR_ABI_VERSION ? 0 : 1; }
