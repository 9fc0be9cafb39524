// What the device needs of the autograd engine.
#pragma once

namespace neuronqa {

// Starts one thread a device. PyTorch does that once a process, at the first backward; where a parent process without
// a device already ran one, its forked children would never get their threads. Call without the GIL: the threads need it.
void start_autograd_threads();

// Is autograd going backward on this thread?
bool in_backward();

}  // namespace neuronqa
