/** Programs that mark operations: a client that does one thing at a time, and a server that only receives what it must. */

import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
} from '../../experiments/workloads/rc-endpoint.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  getCqEvent,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  type IbvSendWr,
  IbvWc,
  postRecv,
  postSend,
  regMr,
  reqNotifyCq,
  spinCq,
} from '../../userlib/index.ts';

const bufferBytes = 16_384;
const receives = 8;

/** Polls until this many completions have arrived. */
async function reap(cq: IbvCq, count: number): Promise<void> {
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  for (let done = 0; done < count; ) done += await spinCq(cq, 16, wcs);
}

interface Ready {
  readonly qp: IbvQp;
  readonly cq: IbvCq;
  readonly address: number;
  readonly lkey: number;
  readonly remote: { readonly address: number; readonly rkey: number };
}

async function connected(program: ProgramContext, hasChannel: boolean) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, bufferBytes);
  const channel = hasChannel ? await createCompChannel(endpoint.context) : null;
  const cq = await createCq(endpoint.context, 64, null, channel);
  const cap = { maxSendWr: 32, maxRecvWr: 32, maxSendSge: 2, maxRecvSge: 1, maxInlineData: 64 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const { address, region } = buffer;
  const list = [{ addr: address, length: bufferBytes, lkey: region.lkey }];
  const peer = await connectRc<Ready['remote']>(
    endpoint,
    [qp!],
    'marked',
    { address, rkey: region.rkey },
    () => {
      for (let index = 0; index < receives; index++) postRecv(qp!, { wrId: index, sgList: list, numSge: 1 });
    },
  );
  const ready: Ready = {
    qp: qp!,
    cq,
    address,
    lkey: region.lkey,
    remote: peer.note,
  };
  return { endpoint, channel, ready };
}

/** A request of this many bytes; the QP signals only requests that ask for it. */
function requestOf(
  { address, lkey, remote }: Ready,
  opcode: IbvSendWr['opcode'],
  length: number,
  flags: number = IBV_SEND_SIGNALED,
): IbvSendWr {
  const rdma = { remoteAddr: remote.address, rkey: remote.rkey };
  const atomic = { ...rdma, compareAdd: 1n, swap: 0n };
  const wr: NonNullable<IbvSendWr['wr']> = opcode === IBV_WR_ATOMIC_FETCH_AND_ADD ? { atomic } : { rdma };
  return { wrId: 0, sgList: [{ addr: address, length, lkey }], numSge: 1, opcode, sendFlags: flags, wr };
}

export async function client(program: ProgramContext): Promise<JsonValue> {
  const { endpoint, channel, ready } = await connected(program, true);
  const { qp, cq } = ready;
  const one = async (wr: IbvSendWr): Promise<void> => {
    postSend(qp, wr);
    await reap(cq, 1);
  };
  // From here on everything that is fetched once is on chip.
  await one(requestOf(ready, IBV_WR_RDMA_WRITE, 256));
  await one(requestOf(ready, IBV_WR_RDMA_READ, 256));
  await one(requestOf(ready, IBV_WR_ATOMIC_FETCH_AND_ADD, 8));
  await program.cpu.sleep(1e9);
  const { operation } = program;
  await operation('write', () => one(requestOf(ready, IBV_WR_RDMA_WRITE, 256)));
  await operation('inline', () =>
    one(requestOf(ready, IBV_WR_RDMA_WRITE, 16, IBV_SEND_SIGNALED | IBV_SEND_INLINE)),
  );
  await operation('read', () => one(requestOf(ready, IBV_WR_RDMA_READ, 256)));
  await operation('large', () => one(requestOf(ready, IBV_WR_RDMA_WRITE, 8192)));
  await operation('atomic', () => one(requestOf(ready, IBV_WR_ATOMIC_FETCH_AND_ADD, 8)));
  await operation('send', () => one(requestOf(ready, IBV_WR_SEND, 100)));
  await operation('list', async () => {
    const last = requestOf(ready, IBV_WR_RDMA_WRITE, 64);
    const list = [0, 1, 2].reduce<IbvSendWr>(
      (next) => ({ ...requestOf(ready, IBV_WR_RDMA_WRITE, 64, 0), next }),
      last,
    );
    await one(list);
  });
  await operation('event', async () => {
    reqNotifyCq(cq, 0);
    postSend(qp, requestOf(ready, IBV_WR_RDMA_WRITE, 64));
    await getCqEvent(channel!);
    ackCqEvents(cq, 1);
    await reap(cq, 1);
  });
  await operation('nothing', () => {});
  // Posted in one operation, completed in the next: the TLPs belong to the first.
  await operation('posts', () => {
    postSend(qp, requestOf(ready, IBV_WR_RDMA_WRITE, 64));
  });
  await operation('reaps', () => reap(cq, 1));
  await operation('registration', async () => {
    await regMr(endpoint.pd, ready.address, 4096, 1);
  });
  const unmarkedPs = program.cpu.instantPs;
  await one(requestOf(ready, IBV_WR_RDMA_WRITE, 64));
  await barrier(program, 'over');
  return Number(unmarkedPs);
}

/** The same client without marks: for results that marking must not change. */
export async function unmarkedClient(program: ProgramContext): Promise<JsonValue> {
  return client({ ...program, operation: async (_name, stretch) => stretch() });
}

export async function server(program: ProgramContext): Promise<void> {
  await connected(program, false);
  await barrier(program, 'over');
}
