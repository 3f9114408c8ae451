// SPDX-License-Identifier: MIT
// A clock that only goes forward.
#ifndef ATTNCL_BASE_CLOCK_H
#define ATTNCL_BASE_CLOCK_H

double attncl__seconds(void);

#endif
