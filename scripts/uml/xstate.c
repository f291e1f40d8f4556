/* Lets user-mode Linux run on processors whose extended state is larger than its fixed buffer (AMX): the kernel takes
 * PTRACE_SETREGSET of that state only in full size, so what user-mode Linux leaves out is read first and given back as it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NT_X86_XSTATE 0x202
#define LARGEST 65536

typedef long (*ptrace_call)(int, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static ptrace_call next;
    static char state[LARGEST] __attribute__((aligned(64)));
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (!next)
        next = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
        struct iovec *given = data;
        struct iovec whole = {state, sizeof state};
        if (next(PTRACE_GETREGSET, pid, address, &whole) == 0 && whole.iov_len > given->iov_len) {
            memcpy(state, given->iov_base, given->iov_len);
            return next(request, pid, address, &whole);
        }
    }
    return next(request, pid, address, data);
}
