// All of Verbena. `#include <verbena/verbena.hpp>`, link with `pkg-config --libs verbena` or CMake's
// verbena::verbena.
#pragma once

#include <verbena/collectives.hpp>
#include <verbena/communicator.hpp>
#include <verbena/communicators.hpp>
#include <verbena/context.hpp>
#include <verbena/error.hpp>
#include <verbena/export.hpp>
#include <verbena/layout.hpp>
#include <verbena/memory.hpp>
#include <verbena/one_sided.hpp>
#include <verbena/owned_communicator.hpp>
#include <verbena/request.hpp>
#include <verbena/types.hpp>
#include <verbena/version.hpp>
