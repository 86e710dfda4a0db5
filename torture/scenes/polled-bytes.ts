/**
 * A program spins on a byte of what the peer WRITEs, somewhere in a message of several pages: when that byte has come, so have
 * all before it, and it is seen at the same instant with any observer attached.
 *
 *     asker: WRITE ─► … page │ page … ─► answerer spins on one byte, reads all up to it ─► next
 */

import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_WRITE } from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  failuresOf,
  leave,
  nowPs,
  post,
  requestOf,
} from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly messages: readonly Message[];
}

interface Message {
  readonly offset: number;
  readonly lengthBytes: number;
  /** Byte of it that is spun on. */
  readonly spunOn: number;
}

const areaBytes = 32 * 1024;
const spinCycles = 30;

function draw(random: Random): SceneDraft {
  const messages = Array.from({ length: 1 + random.below(8) }, (): Message => {
    const offset = random.chance(0.6) ? 256 * random.below(16) : random.below(4096);
    const lengthBytes = 1 + random.below(areaBytes - offset);
    return {
      offset,
      lengthBytes,
      spunOn: random.chance(0.4) ? lengthBytes - 1 : random.below(lengthBytes),
    };
  });
  const args: Args = { messages };
  return {
    args: args as unknown as JsonValue,
    set: random.chance(0.5) ? { 'pcie.rootComplex.writeLatencyPs': random.below(170_000) } : {},
    hasDrawnHardware: random.chance(0.3),
    again: { partition: 'single', shuffleSeed: undefined, isUnwatched: true },
  };
}

const byteOf = (message: number): number => 1 + (message % 250);

export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { messages } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes });
  const wrong: string[] = [];
  for (const [message, { offset, lengthBytes }] of messages.entries()) {
    program.memory.write(side.area.address, new Uint8Array(areaBytes).fill(byteOf(message)));
    await barrier(program, `spins ${message}`);
    post(side.qps[0]!, requestOf(side, message, IBV_WR_RDMA_WRITE, { offset, lengthBytes }));
    wrong.push(...failuresOf(await completionsOf(side, 1)));
    await barrier(program, `seen ${message}`);
  }
  await leave(side);
  return { wrong, seenPs: [] };
}

export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { messages } = program.args as unknown as Args;
  const { cpu, memory, process } = program;
  const side = await connectWithPeer(program, { areaBytes });
  const wrong: string[] = [];
  const seenPs: number[] = [];
  for (const [message, { offset, lengthBytes, spunOn }] of messages.entries()) {
    memory.write(side.area.address, new Uint8Array(areaBytes));
    await barrier(program, `spins ${message}`);
    const address = side.area.address + offset;
    const isThere = (): boolean => memory.read(address + spunOn, 1)[0] === byteOf(message);
    await cpu.spin(process.memory.space.translate(address + spunOn), spinCycles, isThere);
    seenPs.push(nowPs(program));
    const bytes = memory.read(address, lengthBytes);
    const at = bytes.subarray(0, spunOn).findIndex((byte) => byte !== byteOf(message));
    if (at >= 0) wrong.push(`message ${message}: byte ${at} was not there when byte ${spunOn} was`);
    await barrier(program, `seen ${message}`);
  }
  await leave(side);
  return { wrong, seenPs };
}

export const polledBytes: Scene = {
  name: 'polled-bytes',
  about: 'a program spins on a byte of a message of several pages, with and without anybody looking on',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => results.flatMap((result) => (result as unknown as { wrong: string[] }).wrong),
};
