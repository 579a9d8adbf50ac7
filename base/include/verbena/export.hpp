// What the shared library exports: everything marked VERBENA_API, and nothing else.
#pragma once

#define VERBENA_API __attribute__((visibility("default")))
