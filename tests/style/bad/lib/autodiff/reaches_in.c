// Reaches into another directory, on purpose.
#include "graph/internal.h"
