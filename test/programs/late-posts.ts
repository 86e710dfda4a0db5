/** Programs that post to QPs long after these have entered the error state. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createSrq,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  type IbvCq,
  IbvWc,
  modifyQp,
  pollCq,
  postRecv,
  postSend,
  postSrqRecv,
  spinCq,
} from '../../userlib/index.ts';
import { receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

const toError = (pair: Pair): Promise<void> => modifyQp(pair.qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);

/** Spins until a completion has arrived. @returns its status, after `kind` */
async function statusOf(cq: IbvCq, kind: string): Promise<string> {
  const wcs = [new IbvWc()];
  await spinCq(cq, 1, wcs);
  return `${kind} ${wcs[0]!.status}`;
}

/**
 * Drains queues like ib_drain_rq and ib_drain_sq: 2ERR, a request on each queue, its completion; each after a long
 * time.
 */
export async function drains(
  program: ProgramContext<{ readonly rounds: number; readonly waitPs: number }>,
): Promise<JsonValue> {
  const { rounds, waitPs } = program.args;
  const side = await Side.open(program);
  const pair = await side.pair('drained');
  const statuses: string[][] = [];
  await toError(pair);
  for (let round = 0; round < rounds; round++) {
    await program.cpu.sleep(waitPs);
    postRecv(pair.qp, receiveOf([]));
    const first = await statusOf(pair.recvCq, 'receive');
    // A second 2ERR, as of a driver that drains a QP which has failed by itself.
    await toError(pair);
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 8)], remoteAt(pair, 0)));
    postRecv(pair.qp, receiveOf([segment(pair.buffer, 0, 8)]));
    statuses.push([first, await statusOf(pair.sendCq, 'send'), await statusOf(pair.recvCq, 'receive')]);
  }
  await side.barrier('over');
  await side.closePair(pair);
  return statuses;
}

/** Two QPs with one SRQ, of which one fails: its receives serve the remaining QP. @returns the statuses, and the flushed requests */
export async function shares(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const srq = await createSrq(side.pd, { attr: { maxWr: 8, maxSge: 1 } });
  const failed = await side.pair('failed', { srq });
  const working = await side.pair('working', { srq });
  await toError(failed);
  await side.barrier('in error');
  await program.cpu.sleep(1e12);
  postSrqRecv(srq, receiveOf([segment(working.buffer, 0, 64)]));
  await program.cpu.sleep(1e9);
  await side.barrier('posted');
  const isSender = program.node === 0;
  if (isSender) postSend(working.qp, sendOf([segment(working.buffer, 64, 8)]));
  const status = await (isSender ? statusOf(working.sendCq, 'send') : statusOf(working.recvCq, 'receive'));
  const flushed = await pollCq(failed.recvCq, 1, [new IbvWc()]);
  await side.barrier('over');
  return [status, flushed === 0 ? 'nothing' : 'a receive of the failed QP'];
}

/** Posts a receive while the IOMMU does not map the page of its doorbell record, and maps it later. @returns the statuses */
export async function remaps(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const pair = await side.pair('remapped');
  await toError(pair);
  await program.cpu.sleep(1e9);
  const { physicalAddress } = pair.qp.receiveRing!.record;
  program.host.iommu!.unmap([physicalAddress], true);
  postRecv(pair.qp, receiveOf([]));
  await program.cpu.sleep(1e9);
  const early = await pollCq(pair.recvCq, 1, [new IbvWc()]);
  program.host.iommu!.map(physicalAddress, true);
  const status = await statusOf(pair.recvCq, 'receive');
  await side.barrier('over');
  await side.closePair(pair);
  return [`${early} early`, status];
}

/** Leaves a QP in error while another, whose doorbell record is in the same page, receives messages. @returns their statuses */
export async function worksBeside(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const left = await side.pair('left');
  const working = await side.pair('working');
  await toError(left);
  await program.cpu.sleep(1e9);
  const statuses: string[] = [];
  for (let round = 0; round < 4; round++) {
    postRecv(working.qp, receiveOf([segment(working.buffer, 0, 64)]));
    await side.barrier(`posted ${round}`);
    postSend(working.qp, sendOf([segment(working.buffer, 64, 8)]));
    statuses.push(await statusOf(working.sendCq, 'send'), await statusOf(working.recvCq, 'receive'));
  }
  await side.barrier('over');
  return statuses;
}

/** Leaves a QP in error, and ends, or waits for an event that never occurs. */
export async function leaves(program: ProgramContext): Promise<void> {
  const side = await Side.open(program);
  const pair = await side.pair('left');
  await toError(pair);
  await program.cpu.sleep(1e12);
  await side.barrier('over');
  if (program.args === true) await side.hear('what nobody tells');
}
