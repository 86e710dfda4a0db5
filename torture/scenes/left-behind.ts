/**
 * A process ends, or is killed, with everything open and in mid-traffic, while its parent goes on talking to another peer: its
 * requests end, its partner's time out, nothing of it stays, and no other process notices (exit_group(2); ib_uverbs_close).
 *
 *     keeper ── forks ─► leaver ⇄ stayer      one host ⇄ the other
 *     keeper ─────────────────── ⇄ friend
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { createBuffer } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  createCq,
  createSrq,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  postRecv,
} from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly isKilled: boolean;
  /** From when both are connected until the end, or the killing. */
  readonly lifeNs: number;
  readonly qpCount: number;
  readonly requests: number;
  readonly lengthBytes: number;
  /** Of the keeper and its friend. */
  readonly rounds: number;
}

function draw(random: Random): SceneDraft {
  const args: Args = {
    isKilled: random.chance(0.6),
    lifeNs: random.below(200_000),
    qpCount: 1 + random.below(3),
    requests: 1 + random.below(8),
    lengthBytes: 64 << random.below(10),
    rounds: 4 + random.below(12),
  };
  return {
    args: { ...args },
    set: random.chance(0.3) ? { 'pcie.iommu.isEnabled': true } : {},
    hasDrawnHardware: random.chance(0.4),
    climate: 'flawed',
  };
}

/** The same program; its values for the other host have names of their own. */
const labelled = (program: ProgramContext, label: string): ProgramContext => ({
  ...program,
  exchange: {
    put: (name, value) => program.exchange.put(`${label}.${name}`, value),
    take: (name) => program.exchange.take(`${label}.${name}`),
    poll: (name) => program.exchange.poll(`${label}.${name}`),
    latencyPs: program.exchange.latencyPs,
  },
});

/** Short time-outs: a partner that is gone is noticed after some milliseconds. */
const attributes = { timeoutCode: 8, retryCount: 2 };

/** Uses every kind of object, and ends with them open. */
async function leaver(context: ProgramContext, { qpCount, requests, lengthBytes, lifeNs, isKilled }: Args) {
  const program = labelled(context, 'leaving');
  const side = await connectWithPeer(program, {
    areaBytes: requests * lengthBytes,
    qpCount,
    hasChannel: true,
    attributes,
  });
  const { endpoint, qps } = side;
  await createCq(endpoint.context, 8, null, side.cq.channel);
  await createSrq(endpoint.pd, { attr: { maxWr: 8, maxSge: 1 } });
  await createBuffer(endpoint, 3 * lengthBytes);
  for (const [at, qp] of qps.entries())
    for (let id = 0; id < requests; id++) {
      const opcode = (at + id) % 2 === 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
      post(qp, requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes }));
      postRecv(qp, { wrId: id, sgList: [], numSge: 0 });
    }
  // One that is to be killed ends by that alone.
  await program.cpu.sleep(isKilled ? 1000 * 1000 * psPerUs : lifeNs * psPerNs);
}

/** Forks the leaver, waits for its end, and goes on with its friend. */
export async function keeper(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const args = program.args as unknown as Args;
  const { lengthBytes, lifeNs, isKilled, rounds } = args;
  const side = await connectWithPeer(labelled(program, 'staying'), { areaBytes: 2 * lengthBytes });
  const child = program.fork('leaver', (context) => leaver(context, args));
  if (child === 'ENOMEM') return { wrong: ['fork: ENOMEM'] };
  await cpu.settle();
  await program.exchange.take('connected');
  const wrong: string[] = [];
  const victims: { readonly address: number; readonly number: number }[] = [];
  const victimBytes = 16 * 4096;
  for (let round = 0; round < rounds; round++) {
    if (round === 1) {
      await cpu.sleep(lifeNs * psPerNs);
      if (isKilled) child.kill('in mid-traffic');
    }
    memory.write(side.area.address, patternOf(round, lengthBytes));
    for (const [id, opcode] of [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ].entries())
      post(
        side.qps[0]!,
        requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes, remoteOffset: 0 }),
      );
    const ended = await completionsOf(side, 2);
    wrong.push(...failuresOf(ended));
    if (ended.length < 2) wrong.push(`round ${round}: ${ended.length} of 2 requests ended`);
    wrong.push(
      ...differencesOf(
        `what came back in round ${round}`,
        memory.read(side.area.address + lengthBytes, lengthBytes),
        patternOf(round, lengthBytes),
      ),
    );
    if (!child.isEnded) continue;
    // Its frames must be free again.
    const address = memory.map(victimBytes);
    wrong.push(
      ...differencesOf('new memory', memory.read(address, victimBytes), new Uint8Array(victimBytes)),
    );
    memory.write(address, patternOf(round, victimBytes));
    victims.push({ address, number: round });
  }
  for (let waited = 0; !child.isEnded || child.memory.space.mappedBytes > 0; waited++) {
    if (waited === 10_000)
      return { wrong: [...wrong, 'the process that left is still there after a second'] };
    await cpu.sleep(100 * psPerUs);
  }
  await program.exchange.put('gone', true);
  await program.exchange.take('missed');
  for (const { address, number } of victims)
    wrong.push(
      ...differencesOf(
        `memory of round ${number}`,
        memory.read(address, victimBytes),
        patternOf(number, victimBytes),
      ),
    );
  await program.exchange.put('over', true);
  await leave(side);
  return { wrong };
}

/** Answers the keeper. */
export async function friend(program: ProgramContext): Promise<JsonValue> {
  const { lengthBytes } = program.args as unknown as Args;
  const side = await connectWithPeer(labelled(program, 'staying'), { areaBytes: 2 * lengthBytes });
  await program.exchange.take('over');
  await leave(side);
  return { wrong: [] };
}

/** Talks to the process that leaves until no answer comes. */
export async function stayer(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, requests, lengthBytes } = program.args as unknown as Args;
  const side = await connectWithPeer(labelled(program, 'leaving'), {
    areaBytes: requests * lengthBytes,
    qpCount,
    attributes,
  });
  await program.exchange.put('connected', true);
  const statuses: number[] = [];
  const qp = side.qps[0]!;
  const talk = async (): Promise<void> => {
    for (let id = 0; id < 2; id++)
      post(qp, requestOf(side, id, IBV_WR_RDMA_WRITE, { offset: 0, lengthBytes }));
    statuses.push(...(await completionsOf(side, 2)).map(({ status }) => status));
  };
  for (let round = 0; round < 2000 && (statuses.at(-1) ?? 0) === IBV_WC_SUCCESS; round++) {
    await talk();
    await program.cpu.sleep(50 * psPerUs);
  }
  await program.exchange.take('gone');
  if (statuses.at(-1) === IBV_WC_SUCCESS) await talk();
  await program.exchange.put('missed', true);
  const broken = statuses.findIndex((status) => status !== IBV_WC_SUCCESS);
  const wrong = broken < 0 ? ['requests to a process that is gone go on to succeed'] : [];
  if (broken >= 0 && statuses[broken] !== IBV_WC_RETRY_EXC_ERR)
    wrong.push(`the first request that failed ended in ${statuses[broken]}`);
  if (broken >= 0 && statuses.slice(broken + 1).some((status) => status !== IBV_WC_WR_FLUSH_ERR))
    wrong.push(`statuses ${statuses.slice(broken).join()}`);
  await leave(side);
  return { wrong };
}

export const leftBehind: Scene = {
  name: 'left-behind',
  about: 'a process ends or is killed with everything open and in mid-traffic while others go on',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'keeper' },
    { node: 1, exportName: 'friend' },
    { node: 1, exportName: 'stayer' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
