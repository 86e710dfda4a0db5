/**
 * Ends of a connection by entries of the P_Key table: what comes from another partition, or from none, is dropped and counted
 * (IBTA 9.6.1.1, 10.9.2, 10.9.3). The entries behind the first are empty, and an empty one is of no partition.
 */
import { psPerNs, psPerUs } from '../../../base/index.ts';
import type { Random } from '../../../sim/index.ts';
import {
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  queryPkey,
  queryPort,
} from '../../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { barrier } from '../../workloads/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  lastBytesIn,
  leave,
  post,
  requestOf,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  readonly retryCount: number;
  /** Of the QP at each end. */
  readonly pkeyIndexes: readonly [number, number];
}

interface Told {
  readonly ended: readonly Ended[];
  readonly pkey: number;
  /** Place of the first byte that has not come; -1: all have. */
  readonly difference: number;
  readonly violations: number;
}

function draw(random: Random): SceneDraft {
  const index = (): number => (random.chance(0.5) ? 0 : 1 + random.below(127));
  const args: Args = {
    opcode: random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: 1 + random.below(5000),
    retryCount: random.below(4),
    pkeyIndexes: [index(), index()],
  };
  return { args: { ...args }, hasDrawnHardware: random.chance(0.3), climate: 'flawed' };
}

/** Asks once. */
export const asker = (program: ProgramContext): Promise<JsonValue> => play(program, 0);

/** Has the memory. */
export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program, 1);

async function play(program: ProgramContext, node: 0 | 1): Promise<JsonValue> {
  const { opcode, lengthBytes, retryCount, pkeyIndexes } = program.args as unknown as Args;
  const pkeyIndex = pkeyIndexes[node];
  const side = await connectWithPeer(program, {
    areaBytes: lengthBytes,
    attributes: { timeoutCode: 11, retryCount },
    pkeyIndex,
  });
  const { context } = side.endpoint;
  const { memory } = program;
  const isSource = (opcode === IBV_WR_RDMA_READ) === (node === 1);
  if (isSource) memory.write(side.area.address, patternOf(1, lengthBytes));
  await barrier(program, 'filled');
  const ended: Ended[] = [];
  if (node === 0) {
    post(side.qps[0]!, requestOf(side, 1, opcode, { offset: 0, lengthBytes }));
    ended.push(
      ...(await watchCompletions(side, 1, { napPs: 5000 * psPerNs, patiencePs: 1_000_000 * psPerUs })),
    );
  }
  await barrier(program, 'over');
  await lastBytesIn(program);
  const difference = isSource
    ? -1
    : firstDifference(memory.read(side.area.address, lengthBytes), patternOf(1, lengthBytes));
  const pkey = await queryPkey(context, 1, pkeyIndex);
  const { badPkeyCntr } = await queryPort(context, 1);
  await leave(side);
  return { ended, pkey, difference, violations: badPkeyCntr } as unknown as JsonValue;
}

/** The same partition, and one of the two a full member of it. */
const isSame = (left: number, right: number): boolean =>
  (left & 0x7fff) === (right & 0x7fff) && (left & 0x7fff) !== 0 && ((left | right) & 0x8000) !== 0;

export const otherPartitions: Scene = {
  name: 'other-partitions',
  about: 'one request between QPs whose P_Keys agree or do not',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }: ScenePlayed): string[] {
    const { retryCount } = args as unknown as Args;
    const [own, other] = results as unknown as [Told, Told];
    const isOne = isSame(own.pkey, other.pkey);
    const found: string[] = [];
    const status = own.ended[0]?.status;
    if (status !== (isOne ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR))
      found.push(`P_Keys ${own.pkey} and ${other.pkey}: the request ended in ${status}`);
    const differences = [own.difference, other.difference];
    if (isOne && !differences.every((at) => at === -1)) found.push('not all bytes have come');
    if (!isOne && differences.every((at) => at === -1)) found.push('bytes came from another partition');
    const violations = other.violations;
    if (isOne ? violations !== 0 : violations < 1 + retryCount)
      found.push(
        `${violations} packets with a wrong P_Key are counted, ${1 + retryCount} attempts were made`,
      );
    return found;
  },
};
