// The compiler knows these numbers itself: __bf16, _Float16. cuda_words.h has the rest.
