/** Parameters of the machine as a whole: number of nodes, connections in addition to the cable, end of a run. */
import { choice, number } from '../../base/index.ts';

export const machineParameters = {
  nodeCount: number(
    2,
    'nodes',
    [2, 128],
    'choice',
    'Hosts, each with one adapter; even: node 0 is cabled to node 1, 2 to 3, unless a topology says otherwise.',
  ),
  routing: choice(
    'min-hop',
    ['min-hop', 'up-down', 'fat-tree'],
    'opensm 3.3.23: minhop is its default, updn and ftree are its choices for circles of links and for fat trees',
    'How routes through switches are chosen: the fewest links; up, then down, which cannot end in a deadlock of credits; or spread over a fat tree.',
  ),
  adapter: choice(
    'hca',
    ['hca', 'nic'],
    'choice',
    'What is in the slot of every host: the HCA, or a conventional Ethernet NIC.',
  ),
  nicDriver: choice(
    'kernel',
    ['kernel', 'none'],
    'choice',
    'What drives the NIC: the kernel, which offers sockets, or the program itself, by programmed I/O.',
  ),
  seed: number(1, 'seed', [0, 2 ** 32 - 1], 'choice', 'Seed of everything that is drawn at random.'),
  exchangeLatencyNs: number(
    20_000,
    'ns',
    [1_000, 1_000_000_000],
    'estimate: one way of a TCP message through both kernels on a quiet 1 Gb/s network',
    'Latency of the out-of-band exchange between programs of different hosts.',
  ),
  exchangeBufferKib: number(
    256,
    'KiB',
    [4, 65_536],
    'simulator limit, no hardware',
    'Room for exchanged values under way between two hosts; with more than 8 hosts a pair has less, at least 16 KiB.',
  ),
  drainNs: number(
    100_000,
    'ns',
    [1, 1_000_000_000],
    'choice: above every latency of the default profile',
    'Simulated time that a run continues after its last program has ended, so that messages in flight arrive.',
  ),
  pollPatienceMs: number(
    100,
    'ms',
    [1, 100_000],
    'choice: above any wait for another host that is at work; 5 million polls',
    'How long programs may do nothing but poll while nothing else is due anywhere; then the run ends with a DeadlockError.',
  ),
} as const;
