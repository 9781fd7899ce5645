#ifndef HELPER_PORTS_H
#define HELPER_PORTS_H

/*
 * Connects the client to ports of this pod's localhost, as its frames ask, until the client or the runner is gone. Tells the runner
 * when bytes have moved. Ends the process; connections that are open then are reset.
 */
__attribute__((noreturn)) void serve_ports(int runner);

#endif
