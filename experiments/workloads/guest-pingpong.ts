/**
 * The peer of a stock `ibv_rc_pingpong` in a guest, with the steps of that program (rdma-core,
 * libibverbs/examples/rc_pingpong.c): first each side sends LID, QP number, PSN and GID over TCP, as text; then they
 * exchange messages. On Ethernet the GID is the address.
 *
 *     guest's client   52 bytes ─► here, then 52 bytes ◄─, then "done" ─►        the guest sends first
 *     guest's server   52 bytes ◄─ here, then 52 bytes ─►, then "done" ◄─        this side sends first
 *
 * Every received message must contain, byte for byte, what the program sends with `-c`: 0x7b, and 0 at the start of
 * each page. A stock server only prints a mismatch; here any other byte is an error.
 */
import { pageBytes, psPerMs, toHex } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  IBV_MTU_1024,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WR_SEND,
  type IbvQp,
  postRecv,
  postSend,
} from '../../userlib/index.ts';
import { CompletionPoller, checkPosted } from './completion-poller.ts';
import { acceptGuest, connectGuest, type GuestStream, GuestStreamError } from './guest-stream.ts';
import { ownAddressOf, peerFrom } from './port-address.ts';
import { createBuffer, createRcQps, openEndpoint, type RcBuffer, rcDefaults } from './rc-endpoint.ts';
import { type RcAddress, toInit, toRtr, toRts } from './rc-states.ts';

/** The TCP port at which both sides of the program connect. */
const meetingPort = 18_515;
const addressBytes = '0000:000000:000000:00000000000000000000000000000000\0'.length;
const doneText = 'done\0';
/** Replaces the GID on InfiniBand. */
const noGid: readonly number[] = new Array(16).fill(0);
const receiveDepth = 500;
const fillByte = 0x7b;
/** How long to try to reach the guest's server, which may only just have been started. */
const connectTries = 100;

export interface GuestPingpongArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  /** Like its options -s and -n. */
  readonly sizeBytes: number;
  readonly iterations: number;
  /** Like its option -g on an Ethernet port, for the own table; if left out: the GID of the IPv4 address, by the newest version of RoCE. */
  readonly gidIndex?: number;
}

export interface GuestPingpongResult {
  readonly received: number;
  readonly sent: number;
}

/** Received bytes that differ from the expected ones. */
export class GuestDataError extends Error {
  override readonly name = 'GuestDataError';
}

/**
 * Acts as the peer of `ibv_rc_pingpong -c`.
 * @throws GuestStreamError, GuestDataError, WorkFailedError
 */
export async function guestPingpong(
  program: ProgramContext,
  { guest, sizeBytes, iterations, gidIndex }: GuestPingpongArgs,
): Promise<GuestPingpongResult> {
  // By then the guest's driver is loaded, and the port becomes active.
  const client = guest === 'client' ? await acceptGuest(program) : undefined;
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, sizeBytes);
  const cq = await createCq(endpoint.context, receiveDepth + 1);
  const cap = { maxSendWr: 1, maxRecvWr: receiveDepth, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = (await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap)) as [IbvQp];
  await toInit(qp);
  for (let posted = 0; posted < Math.min(iterations, receiveDepth); posted++) receive(qp, buffer);
  const pattern = new Uint8Array(sizeBytes).fill(fillByte);
  for (let at = 0; at < sizeBytes; at += pageBytes) pattern[at] = 0;
  // Before the guest can send: the buffer contains no part of the expected pattern.
  program.memory.write(buffer.address, guest === 'server' ? pattern : pattern.map(() => fillByte));
  const address = await ownAddressOf(
    endpoint.context,
    endpoint.port,
    gidIndex === undefined ? {} : { gidIndex },
  );
  const own = { ...address, qpNum: qp.qpNum, psn: program.random.below(1 << 24) };
  const attributes = { ...rcDefaults, readAtomicMax: 1, pathMtu: IBV_MTU_1024 };
  const connect = async (peer: RcAddress): Promise<void> => {
    await toRtr(qp, { ...peerFrom(own, peer), qpNum: peer.qpNum, psn: peer.psn }, attributes);
    await toRts(qp, own.psn, attributes);
  };
  await (client === undefined ? connectServer(program, own, connect) : connectClient(client, own, connect));
  return bounce(program, qp, buffer, pattern, new CompletionPoller(cq), { guest, sizeBytes, iterations });
}

type Connect = (peer: RcAddress) => Promise<void>;

/** The guest's client sends its address first. */
async function connectClient(stream: GuestStream, own: RcAddress, connect: Connect): Promise<void> {
  await connect(addressIn(await stream.readAll(addressBytes)));
  await stream.write(textOf(own));
  await stream.readAll(doneText.length);
  await stream.end();
}

/** Repeats the connection attempt until the guest's server answers. */
async function connectServer(program: ProgramContext, own: RcAddress, connect: Connect): Promise<void> {
  for (let tries = 1; ; tries++) {
    const stream = await connectGuest(program, meetingPort);
    await stream.write(textOf(own));
    const answer = await stream.read(addressBytes);
    if (answer.length === addressBytes) {
      await connect(addressIn(answer));
      await stream.write(new TextEncoder().encode(doneText));
      return stream.end();
    }
    if (tries === connectTries)
      throw new GuestStreamError(`nothing answers at port ${meetingPort} of the guest`);
    await stream.end();
    await program.cpu.sleep(100 * psPerMs);
  }
}

const textOf = ({ lid, gid = noGid, qpNum, psn }: RcAddress): Uint8Array => {
  const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
  return new TextEncoder().encode(
    `${hex(lid, 4)}:${hex(qpNum, 6)}:${hex(psn, 6)}:${toHex(Uint8Array.from(gid))}\0`,
  );
};

function addressIn(bytes: Uint8Array): RcAddress {
  const text = new TextDecoder('latin1').decode(bytes);
  const [, lid, qpNum, psn, gid] = /^([\da-f]{4}):([\da-f]{6}):([\da-f]{6}):([\da-f]{32})/.exec(text) ?? [];
  if (gid === undefined) throw new GuestStreamError(`no address of ibv_rc_pingpong: ${JSON.stringify(text)}`);
  return {
    lid: Number.parseInt(lid!, 16),
    qpNum: Number.parseInt(qpNum!, 16),
    psn: Number.parseInt(psn!, 16),
    // All zeros without -g.
    ...(/^0*$/.test(gid) ? {} : { gid: gid.match(/../g)!.map((byte) => Number.parseInt(byte, 16)) }),
  };
}

/** The messages of both directions use one buffer, as in the stock program. */
async function bounce(
  { memory, progress }: ProgramContext,
  qp: IbvQp,
  buffer: RcBuffer,
  pattern: Uint8Array,
  completions: CompletionPoller,
  { guest, sizeBytes, iterations }: GuestPingpongArgs,
): Promise<GuestPingpongResult> {
  let [received, sent, posted] = [0, 0, 0];
  let mayPost = guest === 'server';
  let isSending = false;
  while (received < iterations || sent < iterations) {
    if (mayPost && !isSending && posted < iterations) {
      [mayPost, isSending] = [false, true];
      posted++;
      send(qp, buffer);
    }
    const count = await completions.wait();
    for (const { opcode } of completions.taken.slice(0, count)) {
      if (opcode !== IBV_WC_RECV) {
        [sent, isSending] = [sent + 1, false];
        continue;
      }
      checkBytes(memory.read(buffer.address, sizeBytes), pattern, received);
      [received, mayPost] = [received + 1, true];
      if (received + receiveDepth <= iterations) receive(qp, buffer);
      progress(received, iterations);
    }
  }
  return { received, sent };
}

function checkBytes(bytes: Uint8Array, pattern: Uint8Array, message: number): void {
  const at = bytes.findIndex((byte, index) => byte !== pattern[index]);
  if (at >= 0)
    throw new GuestDataError(`byte ${at} of message ${message} is ${bytes[at]}, not ${pattern[at]}`);
}

const listOf = ({ address, lengthBytes, region }: RcBuffer) => ({
  sgList: [{ addr: address, length: lengthBytes, lkey: region.lkey }],
  numSge: 1,
});

const receive = (qp: IbvQp, buffer: RcBuffer): void =>
  checkPosted(postRecv(qp, { wrId: 1, ...listOf(buffer) }));

const send = (qp: IbvQp, buffer: RcBuffer): void =>
  checkPosted(
    postSend(qp, { wrId: 2, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED, ...listOf(buffer) }),
  );
