/** Mistakes of the catalogue with connections by rdma_cm. */

import type { ProgramContext } from '../../../machine/index.ts';
import {
  allocPd,
  createCq,
  IBV_QPT_RC,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_PS_TCP,
  type RdmaCmEvent,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaCreateQp,
  rdmaDestroyId,
  rdmaGetCmEvent,
  rdmaListen,
  rdmaReject,
  rdmaResolveAddr,
  rdmaResolveRoute,
} from '../../../userlib/index.ts';
import type { Mistake } from './mistakes.ts';

const sinPort = 7471;
const server = { sinAddr: '10.0.0.2', sinPort };

async function next(channel: RdmaEventChannel): Promise<RdmaCmEvent> {
  const event = (await rdmaGetCmEvent(channel))!;
  rdmaAckCmEvent(event);
  return event;
}

/** Waits for the next event, which must be that of a connection. */
async function established(channel: RdmaEventChannel): Promise<void> {
  const { event, status } = await next(channel);
  if (event !== RDMA_CM_EVENT_ESTABLISHED) throw new Error(`event ${event}, status ${status}`);
}

async function listens({ verbs, exchange }: ProgramContext, port = sinPort): Promise<RdmaEventChannel> {
  const channel = await rdmaCreateEventChannel(verbs);
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort: port });
  await rdmaListen(listener, 4);
  await exchange.put('listening', true);
  return channel;
}

/** Resolves the address once the peer listens; does not read its event. */
async function asks({ verbs, exchange }: ProgramContext, to = server): Promise<RdmaCmId> {
  await exchange.take('listening');
  const id = await rdmaCreateId(await rdmaCreateEventChannel(verbs), null, RDMA_PS_TCP);
  await rdmaResolveAddr(id, null, to, 100);
  return id;
}

async function resolves(program: ProgramContext, to = server): Promise<RdmaCmId> {
  const id = await asks(program, to);
  await next(id.channel);
  await rdmaResolveRoute(id, 100);
  await next(id.channel);
  return id;
}

async function withQp(id: RdmaCmId): Promise<void> {
  const pd = await allocPd(id.verbs!);
  const cq = await createCq(id.verbs!, 16);
  const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
}

/** Connects, and must succeed. */
async function connects(program: ProgramContext, to = server): Promise<void> {
  const id = await resolves(program, to);
  await withQp(id);
  await rdmaConnect(id);
  await established(id.channel); // here
  await program.exchange.put('done', true);
}

export const cmMistakes: readonly Mistake[] = [
  {
    name: 'nothing listens on the port that rdma_connect names',
    cause: 'connection-rejected',
    says: /to 10\.0\.0\.2 port 7472 ended with RDMA_CM_EVENT_REJECTED \(status 8\) .*nothing listens on that port/,
    evidence: { status: 8 },
    host0: (program) => connects(program, { ...server, sinPort: sinPort + 1 }),
    host1: async (program) => {
      await listens(program);
      await program.exchange.take('done');
    },
  },
  {
    name: 'the peer refuses the connection',
    cause: 'connection-rejected',
    says: /status 28.*the program of the peer refused it/,
    host0: (program) => connects(program),
    host1: async (program) => {
      const { id } = await next(await listens(program));
      await rdmaReject(id);
    },
  },
  {
    name: 'the peer takes the request and never accepts it',
    cause: 'connection-not-accepted',
    says: /waits for a connection event .* after rdma_connect: host 1 took the CONNECT_REQUEST at .* neither accepted nor rejected/,
    host0: (program) => connects(program),
    host1: async (program) => {
      await next(await listens(program));
      await program.exchange.take('done');
    },
  },
  {
    name: 'the peer listens and takes no events',
    cause: 'connection-request-not-taken',
    says: /host 1 listens, and does not take the CONNECT_REQUEST/,
    host0: (program) => connects(program),
    host1: async (program) => {
      await listens(program);
      await program.exchange.take('done');
    },
  },
  {
    name: 'the connecting side does not take the answer',
    cause: 'connection-answer-not-taken',
    node: 1,
    says: /after rdma_accept: host 0 does not take the answer/,
    host0: async (program) => {
      const id = await resolves(program);
      await withQp(id);
      await rdmaConnect(id);
      await program.exchange.take('up');
    },
    host1: async (program) => {
      const channel = await listens(program);
      const { id } = await next(channel);
      await withQp(id);
      await rdmaAccept(id);
      await established(channel);
      await program.exchange.put('up', true);
    },
  },
  {
    name: 'the connecting side resolves and never connects',
    cause: 'connection-never-asked',
    node: 1,
    says: /listens: host 0 never called rdma_connect, only rdma_resolve_addr/,
    host0: async (program) => {
      await withQp(await resolves(program));
      await program.exchange.take('up');
    },
    host1: async (program) => {
      await next(await listens(program));
      await program.exchange.put('up', true);
    },
  },
  {
    name: 'the address is of no host',
    cause: 'connection-failed',
    says: /to 10\.0\.0\.77 port 7471 ended with RDMA_CM_EVENT_ADDR_ERROR/,
    host0: async (program) => {
      const { channel } = await asks(program, { sinAddr: '10.0.0.77', sinPort });
      await next(channel);
      await next(channel); // here
    },
    host1: async (program) => {
      await listens(program);
    },
  },
  {
    name: 'rdma_connect without rdma_resolve_route',
    cause: 'verb-refused',
    says: /was refused a call: rdma_connect/,
    host0: async (program) => {
      const id = await asks(program);
      await next(id.channel);
      await withQp(id);
      await rdmaConnect(id); // here
    },
    host1: async (program) => {
      await listens(program);
    },
  },
  {
    name: 'rdma_create_qp before rdma_resolve_addr',
    cause: 'verb-refused',
    says: /was refused a call: rdma_create_qp: the ID has no device/,
    host0: async (program) => {
      const channel = await rdmaCreateEventChannel(program.verbs);
      const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
      const { verbs } = await resolves(program);
      const pd = await allocPd(verbs!);
      const cq = await createCq(verbs!, 16);
      const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
      await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
    },
    host1: async (program) => {
      await listens(program);
    },
  },
  {
    name: 'events of rdma_cm are not acknowledged',
    cause: 'events-unacknowledged',
    says: /destroys an ID of which 1 event was taken and not acknowledged/,
    host0: async (program) => {
      const id = await asks(program);
      await rdmaGetCmEvent(id.channel);
      await rdmaDestroyId(id); // here
    },
    host1: async (program) => {
      await listens(program);
    },
  },
  {
    name: 'an event that nothing was called for',
    cause: 'no-connection-event',
    says: /none of its requests is in progress: its last call was rdma_resolve_addr/,
    host0: async (program) => {
      const { channel } = await asks(program);
      await next(channel);
      await next(channel); // here
    },
    host1: async (program) => {
      await listens(program);
    },
  },
];
