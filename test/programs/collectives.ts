/** Programs that call collective operations, and compare every byte with sums that each host computes for itself. */
import { openCommunicator } from '../../experiments/workloads/open-communicator.ts';
import type { ProgramContext } from '../../machine/program.ts';
import { IBV_QP_STATE, IBV_QPS_ERR, modifyQp } from '../../userlib/index.ts';
import {
  type AllReduceAlgorithm,
  allReduceAlgorithms,
  type Communicator,
  type MessagingConfig,
  type Waiting,
} from '../../userlib/messaging/index.ts';

interface CollectiveArgs {
  readonly size: number;
  /** Numbers of each vector. */
  readonly count: number;
  readonly config?: Partial<MessagingConfig>;
  readonly waiting?: Waiting;
}

/** Words of each kind that came out wrong, and messages that each algorithm sent from here. */
export interface CollectiveResult {
  readonly wrong: Readonly<Record<string, number>>;
  readonly sent: Readonly<Record<string, number>>;
  readonly barrier: { readonly enteredPs: number; readonly leftPs: number };
}

const numberOf = (host: number, index: number): number => Math.imul(host + 1, 0x9e3779b1) ^ (index * 2654435);

const fill = ({ memory }: ProgramContext, address: number, numbers: readonly number[]): void =>
  memory.write(address, new Uint8Array(Int32Array.from(numbers).buffer));

function wrongIn({ memory }: ProgramContext, address: number, expected: readonly number[]): number {
  const bytes = memory.read(address, expected.length * 4);
  const found = new Int32Array(bytes.slice().buffer);
  return expected.filter((value, at) => found[at] !== (value | 0)).length;
}

const sentBy = (group: Communicator, peers: readonly number[]): number =>
  peers.reduce((sum, peer) => {
    const { eager, rendezvous } = group.channelTo(peer).counts;
    return sum + eager + rendezvous;
  }, 0);

export async function collective(program: ProgramContext<CollectiveArgs>): Promise<CollectiveResult> {
  const { args, memory, node, cpu } = program;
  const { size, count, config = {}, waiting = 'poll' } = args;
  const operations = ['barrier', 'broadcast', 'all-to-all', ...allReduceAlgorithms] as const;
  const group = await openCommunicator(program, { size, operations, config, waiting });
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const peers = ranks.filter((rank) => rank !== node);
  const places = Array.from({ length: count }, (_, index) => index);
  const [address, scratch] = [memory.map(4 + count * 4), memory.map(4 + count * 4)];
  const wrong: Record<string, number> = {};
  const sent: Record<string, number> = {};
  for (const algorithm of allReduceAlgorithms) {
    fill(
      program,
      address,
      places.map((index) => numberOf(node, index)),
    );
    const before = sentBy(group, peers);
    await group.allReduce(algorithm, address, scratch, count);
    sent[algorithm] = sentBy(group, peers) - before;
    wrong[algorithm] = wrongIn(
      program,
      address,
      places.map((index) => ranks.reduce((sum, rank) => (sum + numberOf(rank, index)) | 0, 0)),
    );
  }
  for (const root of ranks) {
    fill(
      program,
      address,
      places.map((index) => (node === root ? numberOf(100 + root, index) : 0)),
    );
    await group.broadcast(address, count * 4, root);
    wrong[`broadcast from ${root}`] = wrongIn(
      program,
      address,
      places.map((index) => numberOf(100 + root, index)),
    );
  }
  const [from, to] = [memory.map(size * count * 4 + 4), memory.map(size * count * 4 + 4)];
  fill(
    program,
    from,
    ranks.flatMap((rank) => places.map((index) => numberOf(node * size + rank, index))),
  );
  await group.allToAll(from, to, count * 4);
  wrong['all-to-all'] = ranks.reduce(
    (sum, rank) =>
      sum +
      wrongIn(
        program,
        to + rank * count * 4,
        places.map((index) => numberOf(rank * size + node, index)),
      ),
    0,
  );
  // The programs arrive at the barrier far apart.
  await cpu.sleep(node * 50_000_000);
  const enteredPs = Number(cpu.instantPs);
  await group.barrier();
  await cpu.settle();
  const leftPs = Number(cpu.instantPs);
  await group.flush();
  await group.barrier();
  return { wrong, sent, barrier: { enteredPs, leftPs } };
}

/** Rank 2 leaves; rank 1 sends to it while it receives from rank 0, which is silent. */
export async function losesOne(program: ProgramContext<CollectiveArgs>): Promise<string> {
  const { node, args, cpu, memory } = program;
  const group = await openCommunicator(program, { size: args.size, operations: ['ring'] });
  if (node === 2)
    for (const peer of [1, 3])
      await modifyQp(group.channelTo(peer).qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
  await cpu.sleep(1_000_000_000);
  if (node !== 1) return 'silent';
  const address = memory.map(64);
  try {
    await group.exchange(2, { address, lengthBytes: 64 }, 0, { address, capacityBytes: 64 });
    return 'none';
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
}

/** Opens a communicator for one operation and calls another. */
export async function needsOther(program: ProgramContext<CollectiveArgs>): Promise<string> {
  const operations: readonly AllReduceAlgorithm[] = ['ring'];
  const group = await openCommunicator(program, { size: program.args.size, operations });
  try {
    group.channelTo((program.node + 2) % program.args.size);
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}
