/** Programs that connect by rdma_cm, for test/connections.spec.ts. */

import type { Driver } from '../../driver/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import * as ibv from '../../userlib/index.ts';

const sinPort = 4791;
const dst = { sinAddr: '10.0.0.2', sinPort };

async function next(channel: ibv.RdmaEventChannel): Promise<ibv.RdmaCmEvent> {
  const event = (await ibv.rdmaGetCmEvent(channel))!;
  ibv.rdmaAckCmEvent(event);
  return event;
}

/** The next event of an ID; events of other IDs belong to ended connections. */
async function nextOf(id: ibv.RdmaCmId): Promise<ibv.RdmaCmEvent> {
  for (;;) {
    const event = await next(id.channel);
    if (event.id === id) return event;
  }
}

async function resolved(channel: ibv.RdmaEventChannel, to: ibv.SocketAddress): Promise<ibv.RdmaCmId> {
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, to, 100);
  await nextOf(id);
  await ibv.rdmaResolveRoute(id, 100);
  await nextOf(id);
  return id;
}

async function withQp(id: ibv.RdmaCmId): Promise<ibv.IbvQp> {
  const pd = await ibv.allocPd(id.verbs!);
  const cq = await ibv.createCq(id.verbs!, 4);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  return ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
}

async function listening({ verbs, exchange }: ProgramContext): Promise<ibv.RdmaEventChannel> {
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, 4);
  await exchange.put('listening', true);
  return channel;
}

export async function refused({ verbs, exchange }: ProgramContext): Promise<JsonValue> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const nowhere = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(nowhere, null, { sinAddr: '10.0.0.77', sinPort }, 100);
  const unknown = await next(channel);
  const ask = async (to: ibv.SocketAddress): Promise<ibv.RdmaCmEvent> => {
    await ibv.rdmaConnect(await resolved(channel, to), { qpNum: 0x77 });
    return next(channel);
  };
  const noListener = await ask({ ...dst, sinPort: 1 });
  const answer = await ask(dst);
  const text = new TextDecoder().decode(answer.param.conn.privateData.subarray(0, 2));
  return {
    unknownHost: [ibv.rdmaEventStr(unknown.event), unknown.status],
    noListener: [ibv.rdmaEventStr(noListener.event), noListener.status],
    refused: [ibv.rdmaEventStr(answer.event), answer.status, text],
  };
}

export async function refusing(context: ProgramContext): Promise<void> {
  const channel = await listening(context);
  const { id } = await next(channel);
  await ibv.rdmaReject(id, new TextEncoder().encode('no'));
}

async function attributesOf(id: ibv.RdmaCmId, { exchange }: ProgramContext): Promise<object> {
  const { retryCnt, rnrRetry, maxRdAtomic, maxDestRdAtomic, timeout, sqPsn, rqPsn } = await ibv.queryQp(
    id.qp!,
  );
  await exchange.put('done', true);
  await exchange.take('done');
  return { retryCnt, rnrRetry, maxRdAtomic, maxDestRdAtomic, timeout, sqPsn, rqPsn };
}

export async function attributesOfActive(context: ProgramContext): Promise<object> {
  await context.exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(context.verbs);
  const id = await resolved(channel, dst);
  await withQp(id);
  await ibv.rdmaConnect(id, { responderResources: 4, initiatorDepth: 2, retryCount: 5, rnrRetryCount: 4 });
  await next(channel);
  return attributesOf(id, context);
}

export async function attributesOfPassive(context: ProgramContext): Promise<object> {
  const channel = await listening(context);
  const { id } = await next(channel);
  await withQp(id);
  await ibv.rdmaAccept(id, { responderResources: 2, initiatorDepth: 4, rnrRetryCount: 4 });
  await next(channel);
  return attributesOf(id, context);
}

/** Connects and ends, with everything open. */
export async function leaves({ verbs, exchange }: ProgramContext): Promise<void> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const id = await resolved(channel, dst);
  await withQp(id);
  await ibv.rdmaConnect(id);
  await next(channel);
}

export async function isLeft(context: ProgramContext): Promise<JsonValue> {
  const channel = await listening(context);
  const { id } = await next(channel);
  await withQp(id);
  await ibv.rdmaAccept(id);
  await next(channel);
  return ibv.rdmaEventStr((await next(channel)).event);
}

/** Fetches its events so late that the peer, which had accepted, has ended. */
export async function isLate({ verbs, exchange, cpu, memory }: ProgramContext): Promise<JsonValue> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const id = await resolved(channel, dst);
  const qp = await withQp(id);
  const addr = memory.map(4096);
  const { lkey } = await ibv.regMr(qp.pd, addr, 64, ibv.IBV_ACCESS_LOCAL_WRITE);
  ibv.postRecv(qp, { wrId: 7, sgList: [{ addr, length: 64, lkey }], numSge: 1 });
  await ibv.rdmaConnect(id);
  await cpu.sleep(1e10);
  const { event, status } = await next(channel);
  const wc = [new ibv.IbvWc()];
  await ibv.spinCq(qp.recvCq, 1, wc);
  const more = await ibv.rdmaGetCmEvent(channel, 1e10);
  return [ibv.rdmaEventStr(event), status, ibv.wcStatusStr(wc[0]!.status), more === undefined];
}

/** Accepts, and ends before the peer can use the connection. */
export async function goes(context: ProgramContext): Promise<void> {
  const channel = await listening(context);
  const { id } = await next(channel);
  await withQp(id);
  await ibv.rdmaAccept(id);
}

/** Accepts a request whose program has ended. */
export async function acceptsLate(context: ProgramContext): Promise<JsonValue> {
  const channel = await listening(context);
  const { id } = await next(channel);
  const qp = await withQp(id);
  await context.cpu.sleep(1e10);
  const refusal = await ibv.rdmaAccept(id).catch((error: unknown) => (error as ibv.VerbsError).code);
  const { event } = await next(channel);
  const { qpState } = await ibv.queryQp(qp);
  return [refusal ?? 'none', ibv.rdmaEventStr(event), qpState === ibv.IBV_QPS_ERR];
}

/** Sends a request, and ends before the peer has answered. */
export async function asksAndGoes({ verbs, exchange }: ProgramContext): Promise<void> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const id = await resolved(channel, dst);
  await withQp(id);
  await ibv.rdmaConnect(id);
}

/** Connects to an absent host, for as long as allowed. */
export async function isPatient({ verbs }: ProgramContext): Promise<JsonValue> {
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.77', sinPort }, 2 ** 31 - 1);
  const { event, status } = await next(channel);
  return [ibv.rdmaEventStr(event), status];
}

export interface ResetArgs {
  readonly rounds: number;
  /** The node whose device is reset after each round. */
  readonly resets: 0 | 1;
}

/** Makes the driver reset its device, as a program observes it: like Linux after an internal error. */
async function resetDevice({ verbs, cpu }: ProgramContext): Promise<void> {
  const [driver] = verbs.devices as Driver[];
  driver!.device.lifecycle.die('a test wants it');
  while (!driver!.isProbed) await cpu.sleep(1e9);
}

interface Talk {
  readonly id: ibv.RdmaCmId;
  readonly pd: ibv.IbvPd;
  readonly qp: ibv.IbvQp;
  readonly addr: number;
  readonly lkey: number;
}

async function talkOver(id: ibv.RdmaCmId, { memory }: ProgramContext): Promise<Talk> {
  const qp = await withQp(id);
  const addr = memory.map(4096);
  const { lkey } = await ibv.regMr(qp.pd, addr, 64, ibv.IBV_ACCESS_LOCAL_WRITE);
  return { id, pd: qp.pd, qp, addr, lkey };
}

const segmentsOf = ({ addr, lkey }: Talk) => ({ sgList: [{ addr, length: 8, lkey }], numSge: 1 });

/** Repeatedly connects, sends the number of the round, and has a device reset. @returns the events of each round */
export async function reconnects(context: ProgramContext<ResetArgs>): Promise<JsonValue> {
  const { verbs, exchange, memory, args } = context;
  const { rounds, resets } = args;
  const told: string[][] = [];
  await exchange.take('listening');
  let channel = await ibv.rdmaCreateEventChannel(verbs);
  for (let round = 0; round < rounds; round++) {
    const events: string[] = [];
    let talk: Talk;
    let event: ibv.RdmaCmEvent;
    do {
      talk = await talkOver(await resolved(channel, dst), context);
      await ibv.rdmaConnect(talk.id);
      event = await nextOf(talk.id);
      events.push(`${ibv.rdmaEventStr(event.event).slice('RDMA_CM_EVENT_'.length)} ${event.status}`);
    } while (event.event !== ibv.RDMA_CM_EVENT_ESTABLISHED && events.length < 4);
    memory.write(talk.addr, Uint8Array.of(round, 1, 2, 3, 4, 5, 6, 7));
    ibv.postSend(talk.qp, {
      wrId: 1,
      opcode: ibv.IBV_WR_SEND,
      sendFlags: ibv.IBV_SEND_SIGNALED,
      ...segmentsOf(talk),
    });
    const wc = [new ibv.IbvWc()];
    await ibv.spinCq(talk.qp.sendCq, 1, wc);
    events.push(ibv.wcStatusStr(wc[0]!.status));
    if (resets === 0) {
      await resetDevice(context);
      while ((await next(channel)).event !== ibv.RDMA_CM_EVENT_DEVICE_REMOVAL);
      channel = await ibv.rdmaCreateEventChannel(verbs);
    } else {
      await exchange.put('reset', true);
      await exchange.take('was reset');
    }
    told.push(events);
  }
  return told;
}

/** Accepts connections by one listener at any address, over all resets of a device. @returns first bytes received, and events */
export async function staysListening(context: ProgramContext<ResetArgs>): Promise<JsonValue> {
  const { exchange, memory, args } = context;
  const { rounds, resets } = args;
  const channel = await listening(context);
  const told: JsonValue[] = [];
  const talks = new Map<ibv.RdmaCmId, Talk>();
  for (let round = 0; round < rounds; ) {
    const { event, id, status } = await next(channel);
    told.push(`${ibv.rdmaEventStr(event).slice('RDMA_CM_EVENT_'.length)} ${status}`);
    if (event === ibv.RDMA_CM_EVENT_CONNECT_REQUEST) {
      const talk = await talkOver(id, context);
      talks.set(id, talk);
      ibv.postRecv(talk.qp, { wrId: 1, ...segmentsOf(talk) });
      await ibv.rdmaAccept(id);
    }
    if (event !== ibv.RDMA_CM_EVENT_ESTABLISHED) continue;
    const talk = talks.get(id)!;
    const wc = [new ibv.IbvWc()];
    await ibv.spinCq(talk.qp.recvCq, 1, wc);
    told.push(memory.read(talk.addr, 1)[0]!);
    round++;
    if (resets !== 1) continue;
    await exchange.take('reset');
    await resetDevice(context);
    await exchange.put('was reset', true);
  }
  return told;
}

/** Listens at an address of the device, which is then reset; listens again. @returns its events */
export async function listensAtAnAddress(context: ProgramContext): Promise<JsonValue> {
  const { verbs, exchange } = context;
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const listen = async (): Promise<ibv.RdmaCmId> => {
    const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
    await ibv.rdmaBindAddr(id, dst);
    await ibv.rdmaListen(id, 4);
    return id;
  };
  const first = await listen();
  const before = first.verbs;
  await resetDevice(context);
  const removal = await next(channel);
  await exchange.put('listening', true);
  await exchange.take('asked');
  await ibv.rdmaDestroyId(first);
  const second = await listen();
  await exchange.put('again', true);
  const request = await next(channel);
  return [
    ibv.rdmaEventStr(removal.event),
    removal.id === first,
    ibv.rdmaEventStr(request.event),
    // The device is opened again for the time after the reset.
    second.verbs !== before && request.id.verbs === second.verbs,
  ];
}

/** Sends requests while that listener is inactive, and when it listens again. */
export async function asksTwice({ verbs, exchange }: ProgramContext): Promise<JsonValue> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const first = await resolved(channel, dst);
  await ibv.rdmaConnect(first, { qpNum: 0x77 });
  const { event, status } = await nextOf(first);
  await exchange.put('asked', true);
  await exchange.take('again');
  const second = await resolved(channel, dst);
  await ibv.rdmaConnect(second, { qpNum: 0x78 });
  return [ibv.rdmaEventStr(event), status];
}

/** Has its device reset while a request waits to be fetched. @returns events, and the time from the first REQ to its repetition */
export async function fetchesLate(context: ProgramContext): Promise<JsonValue> {
  const { cpu, exchange } = context;
  const channel = await listening(context);
  await exchange.take('asked');
  await cpu.sleep(1e9);
  const watch = cpu.stopwatch();
  await resetDevice(context);
  const event = await next(channel);
  const seconds = watch.elapsedPs / 1e12;
  const more = await ibv.rdmaGetCmEvent(channel, 1e12);
  await ibv.rdmaReject(event.id);
  return [ibv.rdmaEventStr(event.event), Math.round(seconds * 10), more === undefined];
}

/** Sends one request, and receives the answer eventually. */
export async function asksOnce({ verbs, exchange }: ProgramContext): Promise<JsonValue> {
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const id = await resolved(channel, dst);
  await ibv.rdmaConnect(id, { qpNum: 0x77 });
  await exchange.put('asked', true);
  const { event, status } = await nextOf(id);
  return [ibv.rdmaEventStr(event), status];
}
