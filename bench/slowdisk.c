/* Loaded with LD_PRELOAD, makes each fsync and fdatasync take SLOW_DISK_US microseconds longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void) {
    const char *us = getenv("SLOW_DISK_US");
    if (us) usleep((useconds_t)atoi(us));
}

int fsync(int file) {
    wait_for_disk();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    wait_for_disk();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
