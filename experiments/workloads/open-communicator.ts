/** A communicator over the exchange: its programs run on the hosts 0 to size - 1, and the rank is the host. */
import type { ProgramContext } from '../../machine/index.ts';
import {
  type Collective,
  Communicator,
  collectivePeers,
  MessageChannel,
  type MessagingConfig,
  type Waiting,
} from '../../userlib/messaging/index.ts';
import { messagingConfigOf } from '../model/index.ts';
import type { RouteChoice } from './port-address.ts';
import { connectRc, endpointTo, openEndpoint } from './rc-endpoint.ts';

export interface CommunicatorOptions {
  /** Number of programs. */
  readonly size: number;
  /** The operations it is for: only channels that they need are connected. */
  readonly operations: readonly Collective[];
  /** Changes to the machine's configuration of messages. */
  readonly config?: Partial<MessagingConfig>;
  readonly waiting?: Waiting;
  /** Route of its packets; left out: the port's own. */
  readonly route?: RouteChoice;
  /** Tells the communicators of a program apart. */
  readonly label?: string;
}

/** Every program calls it with the same options. It returns when this program's channels are connected. */
export async function openCommunicator(
  program: ProgramContext,
  options: CommunicatorOptions,
): Promise<Communicator> {
  const { size, operations, config: changes = {}, waiting = 'poll', label = 'communicator' } = options;
  const rank = program.node;
  const config = messagingConfigOf(program.configuration, waiting, changes);
  const endpoint = await openEndpoint(program, options.route);
  const peers = collectivePeers(operations, rank, size);
  const channels = new Map<number, MessageChannel>();
  if (peers.length === 0) return new Communicator(endpoint.context, { rank, size }, channels);
  const completions = await MessageChannel.completionsFor(endpoint.pd, config, peers.length, waiting);
  // All programs connect their pairs in the same order, so that no two wait for each other.
  for (const peer of peers) {
    const channel = await MessageChannel.create(endpoint.pd, config, completions);
    const pair = endpointTo(endpoint, peer);
    const name = `${label}.${Math.min(rank, peer)}.${Math.max(rank, peer)}`;
    await connectRc(pair, [channel.qp], name, null, () => channel.postReceives());
    channels.set(peer, channel);
  }
  return new Communicator(endpoint.context, { rank, size }, channels);
}
