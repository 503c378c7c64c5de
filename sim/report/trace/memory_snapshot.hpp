/// A run as a memory snapshot that PyTorch's page memory_viz shows: what every memory with addresses
/// took, handed out and got back, by tensor, class and time.
///
/// A device of the snapshot is a memory whose allocator is not `ideal`, or in which the plan has an
/// arena of its own, in the order of the platform.
/// Categories are parameter, gradient, optimizer state, activation (also what is saved for backward),
/// workspace, and unknown for the rest. A run that ends `oom` ends with the event of it.
#pragma once

#include "report/trace/trace.hpp"

#include <filesystem>

namespace plimsoll {

/// Throws InputError where no memory has addresses, where they leave their range (2^53), and where
/// the file cannot be written.
void write_memory_snapshot(const TracedRun& run, const std::filesystem::path& path);

}  // namespace plimsoll
