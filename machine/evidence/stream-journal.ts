/**
 * Records of TCP connections and the streams of QPs, as a device of iWARP sees them: how far each came, the error that
 * ended it, and the messages that it brought.
 */
import { TcpEvent } from '../../abi/index.ts';
import type { Hca } from '../../hw/hca/index.ts';
import { NO_ERROR, RdmapOpcode } from '../../protocol/iwarp/index.ts';
import { around } from '../timeline/index.ts';
import { gidText } from './address-text.ts';
import { limits, type StreamEndName, type StreamErrorEvidence, type StreamEvidence } from './evidence.ts';
import { Kept } from './kept.ts';
import type { LiveQps, TransportEvidence, TransportJournal } from './transport-journal.ts';

type IwarpDataPath = NonNullable<Hca['iwarp']>;
type TcpConnection = NonNullable<ReturnType<IwarpDataPath['blocks']['tcpEngine']['open']>>;
type RdmaConnection = NonNullable<IwarpDataPath['blocks']['connections']['rows'][number]>;

interface LiveStream {
  readonly tcp: TcpConnection;
  readonly stream: StreamEvidence;
}

const ends: ReadonlyMap<TcpEvent, StreamEndName> = new Map<TcpEvent, StreamEndName>([
  [TcpEvent.CLOSED, 'closed'],
  [TcpEvent.RESET, 'reset'],
  [TcpEvent.TIMED_OUT, 'timedOut'],
]);

/** The opcode of RDMAP in the second byte of a DDP header (RFC 5040, 4.1). */
const OPCODE_AT = 1;
const OPCODE_MASK = 0x0f;
const messageNames = new Map<number, string>(
  Object.entries(RdmapOpcode).map(([name, opcode]) => [opcode, name]),
);

export class StreamJournal implements TransportJournal {
  readonly #iwarp: IwarpDataPath;
  readonly #qps: LiveQps;
  readonly #streams = new Kept<LiveStream>(limits.objects);
  /** The last connection of each number, which the card uses again. */
  readonly #byNumber = new Map<number, LiveStream>();

  constructor(iwarp: IwarpDataPath, qps: LiveQps) {
    this.#iwarp = iwarp;
    this.#qps = qps;
    this.#watchConnections();
    this.#watchErrors();
    this.#watchMessages();
  }

  /** A stream has no packet sequence numbers. */
  configured(): void {}

  firstPsnOf(): number {
    return 0;
  }

  collect(): TransportEvidence {
    for (const one of this.#streams.list) refresh(one);
    return {
      drops: [],
      refusals: [],
      streams: this.#streams.list.map(({ stream }) => ({ ...stream })),
      omitted: this.#streams.omitted,
    };
  }

  #watchConnections(): void {
    const { tcpEngine, tcpEvents, tcpStreams } = this.#iwarp.blocks;
    around(tcpEngine, 'open', (open) => (opening, bytes, addresses, listener) => {
      const tcp = open(opening, bytes, addresses, listener);
      if (tcp !== undefined) this.#opened(tcp);
      return tcp;
    });
    around(tcpStreams, 'attach', (attach) => (number, qpn, stream, cycle) => {
      const isAttached = attach(number, qpn, stream, cycle);
      const live = this.#byNumber.get(number);
      if (isAttached && live !== undefined) live.stream.qpn = qpn;
      return isAttached;
    });
    around(tcpEvents, 'post', (post) => (tcp, event) => {
      this.#happened(tcp, event);
      post(tcp, event);
    });
  }

  #opened(tcp: TcpConnection): void {
    const live: LiveStream = {
      tcp,
      stream: {
        connection: tcp.number,
        qpn: 0,
        hasExtensions: this.#iwarp.parts.hasExtensions,
        isActive: tcp.listener === undefined,
        localAddress: gidText(tcp.localAddress),
        localPort: tcp.localPort,
        remoteAddress: gidText(tcp.remoteAddress),
        remotePort: tcp.remotePort,
        openedPs: this.#qps.nowPs,
        hasAborted: false,
        retransmissions: 0,
        timeouts: 0,
        tries: 0,
      },
    };
    this.#byNumber.set(tcp.number, live);
    this.#streams.add(live);
  }

  #happened(tcp: TcpConnection, event: TcpEvent): void {
    const live = this.#byNumber.get(tcp.number);
    if (live === undefined || live.tcp !== tcp) return;
    const { stream } = live;
    const atPs = this.#qps.nowPs;
    const end = ends.get(event);
    if (event === TcpEvent.ESTABLISHED || event === TcpEvent.ACCEPTED) stream.establishedPs = atPs;
    else if (event === TcpEvent.PEER_CLOSED) stream.peerClosedPs = atPs;
    if (end === undefined) return;
    refresh(live);
    stream.end = end;
    stream.endedPs = atPs;
    stream.hasAborted = tcp.isAbortDue;
  }

  /** The card calls this of a stream that fails by an error of its own, or by a Terminate of the peer. */
  #watchErrors(): void {
    const { errors, connections } = this.#iwarp.blocks;
    around(errors, 'refused', (refused) => (slot, eventType, cycle) => {
      const connection = connections.rows[slot];
      if (connection !== undefined) this.#failed(connection);
      refused(slot, eventType, cycle);
    });
  }

  #failed(connection: RdmaConnection): void {
    const stream = this.#byNumber.get(connection.number)?.stream;
    if (stream === undefined || stream.ownError !== undefined || stream.peerError !== undefined) return;
    const { failure, peerFailure, quoted } = connection;
    const atPs = this.#qps.nowPs;
    if (failure !== NO_ERROR) stream.ownError = { error: failure, atPs, ...messageOf(quoted) };
    else if (peerFailure !== NO_ERROR) stream.peerError = { error: peerFailure, atPs };
  }

  /** Counts messages as they arrive: those that are refused when they are placed end the stream. */
  #watchMessages(): void {
    const { connections } = this.#iwarp.blocks;
    around(connections, 'startReceiving', (startReceiving) => (slot) => {
      startReceiving(slot);
      const connection = connections.rows[slot];
      if (connection === undefined) return;
      const stream = this.#byNumber.get(connection.number)?.stream;
      if (stream !== undefined) stream.outboundReads = connection.traits.outboundReads;
      this.#watchMessagesOf(connection, slot);
    });
  }

  #watchMessagesOf(connection: RdmaConnection, slot: number): void {
    const served = (kind: 'send' | 'write' | 'writeImmediate' | 'read' | 'atomic'): void => {
      const qp = this.#qps.ofSlot(slot);
      if (qp === undefined) return;
      qp.served[kind]++;
      qp.lastReceivedPs = this.#qps.nowPs;
      this.#qps.progressed();
    };
    const ready = { isRead: false };
    around(connection, 'writeArrived', (writeArrived) => (header) => {
      writeArrived(header);
      served('write');
    });
    around(connection, 'sendArrived', (sendArrived) => (header) => {
      served('send');
      return sendArrived(header);
    });
    around(connection, 'immediateArrived', (immediateArrived) => (header, data) => {
      immediateArrived(header, data);
      served('writeImmediate');
    });
    around(connection, 'atomicRequested', (atomicRequested) => (header, request) => {
      atomicRequested(header, request);
      served('atomic');
    });
    around(connection, 'readyArrived', (readyArrived) => (opcode) => {
      readyArrived(opcode);
      ready.isRead = opcode === RdmapOpcode.READ_REQUEST;
    });
    around(connection, 'readRequested', (readRequested) => (header, request) => {
      readRequested(header, request);
      if (!ready.isRead) served('read');
      ready.isRead = false;
    });
  }
}

function refresh({ tcp, stream }: LiveStream): void {
  if (stream.end !== undefined) return;
  const { counts } = tcp;
  stream.retransmissions = counts.retransmissions;
  stream.timeouts = counts.retransmissionTimeouts;
  stream.tries = tcp.tries;
}

/** The message of the segment in error, if one is quoted. */
function messageOf({ headerBytes, view }: RdmaConnection['quoted']): Pick<StreamErrorEvidence, 'message'> {
  if (headerBytes === 0) return {};
  const message = messageNames.get(view.getUint8(OPCODE_AT) & OPCODE_MASK);
  return message === undefined ? {} : { message };
}
