/**
 * A connection with a stock program in a guest that comes to nothing, or ends at once: the simulated host connects or accepts, and the events of
 * its ID must be the expected ones, each with its status.
 */
import type { ProgramContext } from '../../machine/index.ts';
import {
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_PS_TCP,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaDestroyEventChannel,
  rdmaDestroyId,
  rdmaDestroyQp,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaListen,
} from '../../userlib/index.ts';
import { expectEvent, RdmaEventError, resolvedId } from './guest-connection.ts';
import { GuestEnd } from './guest-end.ts';

/** The port at which a server of either side listens. */
const sinPort = 18_515;

export interface GuestRefusalArgs {
  /** The guest's command. */
  readonly guest: 'client' | 'server';
  /** Address of its server, which listens. */
  readonly address: string;
  /**
   * Events after rdma_connect, or after rdma_accept of the guest's request, as `name status, name status`; several, where a race between the two
   * ends decides.
   */
  readonly events: readonly string[];
}

export interface GuestRefusalResult {
  readonly events: string;
}

/** Connects or accepts once. @throws RdmaEventError for other events */
export async function guestRefusal(
  program: ProgramContext,
  args: GuestRefusalArgs,
): Promise<GuestRefusalResult> {
  const channel = await rdmaCreateEventChannel(program.verbs);
  const events = await (args.guest === 'client' ? accept : connect)(program, channel, args);
  await rdmaDestroyEventChannel(channel);
  return { events };
}

const reads = { responderResources: 1, initiatorDepth: 1 };
const size = { bufferBytes: 64, receives: 1 };

async function connect(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { address, events }: GuestRefusalArgs,
): Promise<string> {
  const id = await resolvedId(channel, { sinAddr: address, sinPort });
  await GuestEnd.create(program, id, size);
  await rdmaConnect(id, reads);
  const seen = await expectAll(channel, events);
  await destroy(id);
  return seen;
}

async function accept(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { events }: GuestRefusalArgs,
): Promise<string> {
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr: '::', sinPort });
  await rdmaListen(listener, 1);
  await program.exchange.put('listening', sinPort);
  try {
    const { id } = await expectEvent(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    await GuestEnd.create(program, id, size);
    await rdmaAccept(id, reads);
    const seen = await expectAll(channel, events);
    await destroy(id);
    return seen;
  } finally {
    await rdmaDestroyId(listener);
  }
}

/** Waits for events until they are among the expected ones. */
async function expectAll(channel: RdmaEventChannel, events: readonly string[]): Promise<string> {
  for (let seen = ''; ; ) {
    const event = (await rdmaGetCmEvent(channel))!;
    rdmaAckCmEvent(event);
    seen += `${seen === '' ? '' : ', '}${rdmaEventStr(event.event)} ${event.status}`;
    if (events.includes(seen)) return seen;
    if (!events.some((expected) => expected.startsWith(`${seen}, `)))
      throw new RdmaEventError(`${seen}; expected ${events.join(' or ')}`);
  }
}

async function destroy(id: RdmaCmId): Promise<void> {
  await rdmaDestroyQp(id);
  await rdmaDestroyId(id);
}
