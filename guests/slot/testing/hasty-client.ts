/** A client in a separate process that maps memory, sets interrupts and writes indefinitely; it must be killed. */

import { createMemfd, VfioUserClient } from '../client/client.ts';
import { INTERRUPT_MSIX, REGION_BAR0 } from '../device.ts';
import { createEventfd } from '../native/poll.ts';

const path = process.argv[2]!;
const client = new VfioUserClient(path, () =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1),
);
client.handshake();
client.map({ sizeBytes: 8192n, readable: 1, writable: 1 }, createMemfd(8192));
client.setEventfds(INTERRUPT_MSIX, 0, 2, [createEventfd(), createEventfd()]);
for (let value = 0; ; value++) client.post(REGION_BAR0, 0, new Uint8Array((value % 512) + 1));
