/**
 * The receiving program of `move`: reads the chunks from its ring of slots, in order, and hashes them.
 *
 *     SEND   a receive is posted for each slot, and again when its chunk was processed, as long as chunks follow: one
 *            left over would keep the slot the device's while WRITE and READ fill it
 *     WRITE  the sender writes the slot, then signals that it is available; the receiver signals that it has consumed it
 *     READ   the sender signals that a slot is available; the receiver reads it, and signals that it has consumed it
 *
 * Over iWARP the receiver signals each chunk that it has consumed, also those that arrived by SEND (move-signals.ts).
 */
import { createHash, type Hash } from 'node:crypto';
import { copyCyclesOf } from '../../host/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import { IBV_SEND_SIGNALED, IBV_WR_RDMA_READ, postRecv } from '../../userlib/index.ts';
import { WorkFailedError } from './completion-poller.ts';
import {
  chunkCountOf,
  chunkLengthOf,
  type MoveArgs,
  type MoveLeg,
  type MoveMethod,
  type MoveReceiverResult,
  moveMethods,
  wordOffsets,
} from './move-plan.ts';
import { MoveRing } from './move-ring.ts';
import { barrier } from './rc-endpoint.ts';

export async function receive(program: ProgramContext<MoveArgs>): Promise<MoveReceiverResult> {
  const args = program.args;
  const ring = await MoveRing.connect(program, args);
  const legs: MoveLeg[] = [];
  for (const method of moveMethods) {
    ring.signals.begin(method === 'SEND' ? 0 : chunkCountOf(args));
    if (method === 'SEND') for (let index = 0; index < args.window; index++) postSlotFor(ring, index);
    await barrier(program, `begin ${method}`);
    legs.push(await takeBy(method, ring));
    await barrier(program, `end ${method}`);
  }
  await barrier(program, 'counted');
  const { memory } = program;
  const result: MoveReceiverResult = {
    legs,
    fetchAddTotal: Number(memory.readUint64(ring.words.address + wordOffsets.fetchAdd)),
    compareSwapTotal: Number(memory.readUint64(ring.words.address + wordOffsets.compareSwap)),
  };
  return result;
}

async function takeBy(method: MoveMethod, ring: MoveRing): Promise<MoveLeg> {
  const { cpu } = ring.program;
  const hash = createHash('sha256');
  const startPs = cpu.localPs;
  if (method === 'SEND') await takeSends(ring, hash);
  if (method === 'WRITE') await takeWrites(ring, hash);
  if (method === 'READ') await takeReads(ring, hash);
  await ring.flush();
  await cpu.settle();
  return { method, startPs, endPs: cpu.localPs, sha256: hash.digest('hex') };
}

async function takeSends(ring: MoveRing, hash: Hash): Promise<void> {
  const { args, receives, signals } = ring;
  const chunkCount = chunkCountOf(args);
  for (let index = 0; index < chunkCount; ) {
    const count = await receives.wait();
    for (let at = 0; at < count; at++, index++) {
      const { byteLen } = receives.taken[at]!;
      if (byteLen !== chunkLengthOf(args, index))
        throw new WorkFailedError(`chunk ${index} has ${byteLen} bytes, not ${chunkLengthOf(args, index)}`);
      takeSlot(ring, index, hash);
      postSlotFor(ring, index + args.window);
      if (signals.areNotices) await signals.publish('consumed', index + 1);
    }
  }
}

async function takeWrites(ring: MoveRing, hash: Hash): Promise<void> {
  const chunkCount = chunkCountOf(ring.args);
  for (let index = 0; index < chunkCount; index++) {
    await ring.signals.until('available', index + 1);
    takeSlot(ring, index, hash);
    await ring.signals.publish('consumed', index + 1);
  }
}

/** Keeps as many reads in flight as there are slots and available chunks. */
async function takeReads(ring: MoveRing, hash: Hash): Promise<void> {
  const { args } = ring;
  const chunkCount = chunkCountOf(args);
  const requestOf: number[] = [];
  let asked = 0;
  for (let index = 0; index < chunkCount; index++) {
    const wanted = Math.min(chunkCount, index + args.window);
    while (asked < wanted && (asked === index || (await ring.signals.has('available', asked + 1)))) {
      await ring.signals.until('available', asked + 1);
      requestOf[asked % args.window] = ring.nextRequest;
      await readChunk(ring, asked++);
    }
    while (ring.completedCount <= requestOf[index % args.window]!) await ring.takeSends();
    takeSlot(ring, index, hash);
    await ring.signals.publish('consumed', index + 1);
  }
}

async function readChunk(ring: MoveRing, index: number): Promise<void> {
  const length = chunkLengthOf(ring.args, index);
  await ring.post({
    wrId: index,
    sgList: ring.segments(ring.slotOf(index), length),
    numSge: 1,
    opcode: IBV_WR_RDMA_READ,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: ring.peerSlotOf(index), rkey: ring.peer.ringKey } },
  });
}

/** Posts the slot of a chunk, if that chunk exists. */
function postSlotFor(ring: MoveRing, index: number): void {
  if (index >= chunkCountOf(ring.args)) return;
  const slot = index % ring.args.window;
  const error = postRecv(ring.qp, {
    wrId: slot,
    sgList: ring.segments(ring.slotOf(slot), ring.args.chunkBytes),
    numSge: 1,
  });
  if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
}

/** Hashes a slot; this is the program's own work, charged like a copy. */
function takeSlot(move: MoveRing, index: number, hash: Hash): void {
  const { program, args } = move;
  const length = chunkLengthOf(args, index);
  hash.update(program.memory.read(move.slotOf(index), length));
  program.cpu.charge('application', copyCyclesOf(program.host.config.cost, length));
}
