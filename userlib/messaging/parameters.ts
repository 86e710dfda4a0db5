/** Parameters of the messaging layer. The host defines the costs of verbs and copies. */
import { type ConfigOf, choice, number } from '../../base/index.ts';

const kib = 1024;
const mib = 1024 * kib;

export const messagingParameters = {
  eagerBytes: number(
    16 * kib,
    'bytes',
    [64, 64 * mib],
    'estimate: MVAPICH2 on ConnectX-3 (MV2_IBA_EAGER_THRESHOLD) keeps 12 to 17 KiB',
    'Largest message that fits into a long-lived registered buffer.',
  ),
  inlineBytes: number(
    128,
    'bytes',
    [32, 512],
    'estimate: what MVAPICH2 and Open MPI ask of mlx4',
    'Messages that are not longer, header included, are given to the device with the work request.',
  ),
  bufferCount: number(
    16,
    'entries',
    [2, 4096],
    'estimate',
    'Eager messages that may be under way, or arrived and not yet received, for each direction.',
  ),
  rendezvousCount: number(
    4,
    'count',
    [1, 256],
    'estimate',
    'Rendezvous that one side may have begun and not finished.',
  ),
  rendezvousBy: choice(
    'read',
    ['read', 'write'],
    'choice: the receiver reads, as Open MPI and MVAPICH2 prefer (one control message less)',
    'Who moves the payload: the receiver by RDMA READ, or the sender by RDMA WRITE.',
  ),
  cutoffBytes: number(
    0,
    'bytes',
    [0, 64 * mib],
    'choice',
    'Messages longer than this go by rendezvous. 0: computed from the cost profile, at most eagerBytes.',
  ),
  cachedRegions: number(
    64,
    'entries',
    [0, 65_536],
    'estimate',
    'Registrations kept after use. 0: every rendezvous registers and deregisters.',
  ),
  cachedMib: number(
    256,
    'MiB',
    [1, 65_536],
    'estimate: a share of RLIMIT_MEMLOCK',
    'Memory that kept registrations may pin.',
  ),
  cacheLookup: number(
    125,
    'cycles',
    [0, 1_000_000],
    'estimate: 50 ns, a few cache lines of a tree',
    'One look-up of a range in the registration cache.',
  ),
  messageOverhead: number(
    100,
    'cycles',
    [0, 1_000_000],
    'estimate: 40 ns',
    'Header, matching and bookkeeping of one message on either side.',
  ),
} as const;

export type MessagingConfig = ConfigOf<typeof messagingParameters>;
