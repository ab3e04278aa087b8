// Lost updates: every thread adds 1 to the same number.
//
// Contract  cases.py, lost_updates
// Idea      read, add, write are three steps, and others come in between
// Finds it  a check against a number that you know; no tool looks at races in device memory for you
// Source    CUDA C++ Programming Guide, section on atomic functions

// region broken
extern "C" __global__ void lost_updates(int *total) { *total = *total + 1; }
// endregion

// region mended
extern "C" __global__ void lost_updates_mended(int *total) { atomicAdd(total, 1); }
// endregion
