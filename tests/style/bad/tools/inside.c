// Reaches inside the library, on purpose.
#include "base/try.h"
