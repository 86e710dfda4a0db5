/**
 * One host's program of an all-reduce over a fabric: the sum of one vector of each host, again and again, each time after
 * a barrier.
 *
 *     connect ─► common start ─► fill, barrier, all-reduce, … ─► the last sum is compared with its closed form
 */
import type { ProgramContext } from '../../machine/index.ts';
import { commonStart } from './common-start.ts';
import type { FabricArgs, ReductionSide } from './fabric-plan.ts';
import { openCommunicator } from './open-communicator.ts';

export async function reducingHost(program: ProgramContext<FabricArgs>): Promise<ReductionSide> {
  const { args, cpu, memory, node } = program;
  const { algorithm = 'ring', hostCount, messages, sizeBytes, trafficClass } = args;
  const count = Math.floor(sizeBytes / 4);
  const group = await openCommunicator(program, {
    size: hostCount,
    operations: ['barrier', algorithm],
    ...(trafficClass === undefined ? {} : { route: { trafficClass } }),
  });
  const [address, scratch] = [memory.map(Math.max(4, sizeBytes)), memory.map(Math.max(4, sizeBytes))];
  for (const buffer of [address, scratch]) await group.register(buffer, Math.max(4, sizeBytes));
  const own = bytesOf(count, (index) => termOf(node, index));
  const startPs = await commonStart(program, hostCount);
  await cpu.sleep(startPs - Number(cpu.instantPs));
  const times: (readonly [startPs: number, endPs: number])[] = [];
  // The first operation fills the caches of the card, and is not measured.
  for (let round = -1; round < messages; round++) {
    memory.write(address, own);
    await group.barrier();
    const beganPs = cpu.localPs;
    await group.allReduce(algorithm, address, scratch, count);
    if (round >= 0) times.push([beganPs, cpu.localPs]);
    program.progress(round + 1, messages);
  }
  const sum = bytesOf(count, (index) => sumOf(hostCount, index));
  const isRight = memory.read(address, count * 4).every((byte, at) => byte === sum[at]);
  await group.flush();
  await group.barrier();
  return { startPs, times, isRight };
}

/** Number at a place of a host's vector. */
const termOf = (host: number, index: number): number => (index % 1009) * 7 + host * 13 + 1;

/** The sum of all hosts' numbers, in closed form. */
const sumOf = (hosts: number, index: number): number =>
  hosts * ((index % 1009) * 7 + 1) + (13 * hosts * (hosts - 1)) / 2;

function bytesOf(count: number, numberAt: (index: number) => number): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(count * 4));
  for (let index = 0; index < count; index++) view.setInt32(index * 4, numberAt(index), true);
  return new Uint8Array(view.buffer);
}
