/** The same small messages into lists of buffers, normally and in their receive WQE: for the cost of each. */
import { pageBytes } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { createCq, type IbvSge, IbvWc, postRecv, postSend, spinCq } from '../../userlib/index.ts';
import { areEqual, patternOf, receiveOf, sendOf } from './requests.ts';

export const messages = 32;
export const messageBytes = 48;
/** Buffers of each receive, on three pages. */
const pieces = 3;
const areaBytes = 4 * pageBytes;

const listOf = (address: number, lkey: number): IbvSge[] =>
  Array.from({ length: pieces }, (_, piece) => ({
    addr: address + piece * pageBytes,
    length: messageBytes / pieces,
    lkey,
  }));

async function open(program: ProgramContext, inlRecvSz: number) {
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 127);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxRecvSge: pieces };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap, inlRecvSz);
  const area = await createBuffer(endpoint, areaBytes);
  return { endpoint, cq, qp: qp!, area };
}

export async function sender(program: ProgramContext): Promise<JsonValue> {
  const { endpoint, cq, qp, area } = await open(program, 0);
  await connectRc(endpoint, [qp], 'inline');
  const wc = [new IbvWc()];
  for (let message = 0; message < messages; message++) {
    program.memory.write(area.address, patternOf(message, messageBytes));
    const sge = { addr: area.address, length: messageBytes, lkey: area.region.lkey };
    await barrier(program, `receive ${message}`);
    postSend(qp, sendOf([sge]));
    await spinCq(cq, 1, wc);
  }
  return null;
}

export async function receiver(program: ProgramContext<{ inlRecvSz: number }>): Promise<JsonValue> {
  const { inlRecvSz } = program.args;
  const { endpoint, cq, qp, area } = await open(program, inlRecvSz);
  await connectRc(endpoint, [qp], 'inline');
  const wc = [new IbvWc()];
  let right = 0;
  for (let message = 0; message < messages; message++) {
    const list = listOf(area.address, area.region.lkey);
    postRecv(qp, receiveOf(list, message));
    await barrier(program, `receive ${message}`);
    await spinCq(cq, 1, wc);
    const parts = list.map(({ addr, length }) => program.memory.read(addr, length));
    const came = Uint8Array.from(parts.flatMap((part) => [...part]));
    if (wc[0]!.byteLen === messageBytes && areEqual(came, patternOf(message, messageBytes))) right++;
  }
  return { right };
}
