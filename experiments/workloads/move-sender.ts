/**
 * The sending program of `move`: streams a file, chunk by chunk, through a ring of slots in simulated memory to the
 * receiver, by SEND, by RDMA WRITE, and by the receiver's RDMA READ; then counts in the receiver's memory by atomics.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { copyCyclesOf } from '../../host/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
} from '../../userlib/index.ts';
import { WorkFailedError } from './completion-poller.ts';
import {
  chunkCountOf,
  chunkLengthOf,
  type MoveArgs,
  type MoveLeg,
  type MoveMethod,
  type MoveSenderResult,
  moveMethods,
  wordOffsets,
} from './move-plan.ts';
import { MoveRing } from './move-ring.ts';
import { barrier } from './rc-endpoint.ts';

export async function send(program: ProgramContext<MoveArgs>): Promise<MoveSenderResult | null> {
  const args = program.args;
  const ring = await MoveRing.connect(program, args);
  const file = openSync(args.file, 'r');
  try {
    const legs: MoveLeg[] = [];
    for (const method of moveMethods) {
      ring.signals.begin(chunkCountOf(args));
      await barrier(program, `begin ${method}`);
      legs.push(await moveBy(method, ring, file, legs.length));
      await barrier(program, `end ${method}`);
    }
    const atomics = await countByAtomics(ring);
    await barrier(program, 'counted');
    const result: MoveSenderResult = { legs, atomics };
    return result;
  } finally {
    closeSync(file);
  }
}

async function moveBy(method: MoveMethod, ring: MoveRing, file: number, leg: number): Promise<MoveLeg> {
  const { program, args } = ring;
  const { cpu } = program;
  const hash = createHash('sha256');
  const startPs = cpu.localPs;
  const chunkCount = chunkCountOf(args);
  const freeAt: number[] = [];
  for (let index = 0; index < chunkCount; index++) {
    await untilSlotIsFree(method, ring, index, freeAt);
    const length = chunkLengthOf(args, index);
    hash.update(fillSlot(ring, file, index, length));
    freeAt[index % args.window] = ring.nextRequest;
    if (method === 'SEND') await sendChunk(ring, index, length);
    if (method === 'WRITE') await writeChunk(ring, index, length);
    if (method !== 'SEND') await ring.signals.publish('available', index + 1);
    program.progress(leg * args.fileBytes + index * args.chunkBytes + length, 3 * args.fileBytes);
  }
  const { signals } = ring;
  if (method === 'READ' || signals.areNotices) await signals.until('consumed', chunkCount);
  await ring.flush();
  await cpu.settle();
  return { method, startPs, endPs: cpu.localPs, sha256: hash.digest('hex') };
}

/** A slot may be refilled once its chunk has left: sent and acknowledged, consumed by the receiver, or read from it. */
async function untilSlotIsFree(
  method: MoveMethod,
  ring: MoveRing,
  index: number,
  freeAt: readonly number[],
): Promise<void> {
  const { args, signals } = ring;
  const { window } = args;
  if (index < window) return;
  if (method !== 'SEND' || signals.areNotices) await signals.until('consumed', index - window + 1);
  while (ring.completedCount <= freeAt[index % window]!) await ring.takeSends();
}

/** Reads a chunk of the file into its slot; this is the program's own work, charged like a copy. */
function fillSlot(ring: MoveRing, file: number, index: number, length: number): Buffer {
  const { program, args } = ring;
  const chunk = Buffer.allocUnsafe(length);
  const found = readSync(file, chunk, 0, length, index * args.chunkBytes);
  if (found !== length) throw new WorkFailedError(`${args.file} has become shorter while it was moved`);
  program.memory.write(ring.slotOf(index), chunk);
  program.cpu.charge('application', copyCyclesOf(program.host.config.cost, length));
  return chunk;
}

async function sendChunk(ring: MoveRing, index: number, length: number): Promise<void> {
  await ring.post({
    wrId: index,
    sgList: ring.segments(ring.slotOf(index), length),
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: IBV_SEND_SIGNALED,
  });
}

async function writeChunk(ring: MoveRing, index: number, length: number): Promise<void> {
  await ring.post({
    wrId: index,
    sgList: ring.segments(ring.slotOf(index), length),
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: ring.peerSlotOf(index), rkey: ring.peer.ringKey } },
  });
}

/** Counts to `atomicCount` twice: by FETCH_ADD of 1, and by CMP_SWAP of the last value read with its successor. */
async function countByAtomics(ring: MoveRing): Promise<MoveSenderResult['atomics']> {
  const { cpu } = ring.program;
  const startPs = cpu.localPs;
  const { atomicCount } = ring.args;
  for (let count = 0; count < atomicCount; count++) await atomic(ring, 'fetchAdd', 1n, 0n);
  let known = 0n;
  let compareRetries = 0;
  for (let count = 0; count < atomicCount; ) {
    const found = await atomic(ring, 'compareSwap', known, known + 1n);
    if (found === known) count++;
    else compareRetries++;
    known = found === known ? known + 1n : found;
  }
  await cpu.settle();
  return { startPs, endPs: cpu.localPs, compareRetries };
}

/**
 * One atomic on a counter of the peer.
 * @returns the old value
 */
async function atomic(
  ring: MoveRing,
  counter: 'fetchAdd' | 'compareSwap',
  compareAdd: bigint,
  swap: bigint,
): Promise<bigint> {
  const { words, peer, program } = ring;
  const result = words.address + wordOffsets.result;
  const remoteAddr = peer.wordsAddress + wordOffsets[counter];
  await ring.post({
    wrId: 0,
    sgList: [{ addr: result, length: 8, lkey: words.region.lkey }],
    numSge: 1,
    opcode: counter === 'fetchAdd' ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { atomic: { remoteAddr, rkey: peer.wordsKey, compareAdd, swap } },
  });
  await ring.flush();
  return program.memory.readUint64(result);
}
