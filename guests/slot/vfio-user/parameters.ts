/** Sizes, counts and waits of the vfio-user server: limits for everything that a client can make grow. */

import { type ConfigOf, number } from '../../../base/index.ts';

const protocolDefault = 'QEMU docs/interop/vfio-user.rst, Version';

export const vfioUserParameters = {
  maxDataTransferBytes: number(
    1_048_576,
    'bytes',
    [4096, 67_108_864],
    protocolDefault,
    'longest data of one region access; QEMU reads configuration space and ROM in one piece',
  ),
  maxMessageDescriptors: number(
    16,
    'count',
    [1, 253],
    'QEMU hw/vfio-user/protocol.h, VFIO_USER_MAX_MAX_FDS',
    'descriptors that one message may carry',
  ),
  dmaMapCountMax: number(
    65_535,
    'count',
    [1, 65_535],
    protocolDefault,
    'regions of guest memory mapped at one time',
  ),
  memoryFileCountMax: number(
    256,
    'count',
    [1, 4096],
    'estimate',
    'files of guest memory held open at one time',
  ),
  idleMemoryFileCountMax: number(
    4,
    'count',
    [0, 4096],
    'estimate',
    'files kept mapped that no region uses now: firmware maps the same RAM again and again',
  ),
  memoryWindowCountMax: number(
    4096,
    'count',
    [1, 32_768],
    'estimate: half of Linux vm.max_map_count at most',
    'mappings of at most 1 GiB of guest memory at one time',
  ),
  listenBacklog: number(8, 'count', [1, 4096], 'estimate', 'clients that may wait to be answered'),
  refusalWaitMs: number(
    1000,
    'ms of wall clock',
    [1, 600_000],
    'estimate',
    'wait for the first message of a client that is to be refused before it is dropped without an answer',
  ),
  dispatchCountMax: number(
    64,
    'count',
    [1, 65_536],
    'estimate',
    'messages of one client dispatched in one poll',
  ),
  sendWaitMs: number(
    1000,
    'ms of wall clock',
    [1, 60_000],
    'estimate',
    'wait for a client that does not read its replies before it is dropped',
  ),
  messageWaitMs: number(
    2000,
    'ms of wall clock',
    [1, 600_000],
    'estimate: QEMU sends a message in one piece, and waits 5000 ms for a reply',
    'wait for more of a message that has begun before its client is dropped',
  ),
  handshakeWaitMs: number(
    5000,
    'ms of wall clock',
    [1, 600_000],
    'QEMU hw/vfio-user/proxy.h, its own reply time-out',
    'wait for a new client to say which version it speaks before it is dropped',
  ),
} as const;

export type VfioUserConfig = ConfigOf<typeof vfioUserParameters>;
