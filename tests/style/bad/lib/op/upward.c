// Breaks the flow on purpose: the style tests must refuse this directory.
#include "base/try.h"
#include "graph/graph.h"
#include "attncl/graph.h"
