/**
 * The commands of TCP connections: OPEN_TCP, CLOSE_TCP, SEND_TCP, RECEIVE_TCP, QUERY_TCP. A card's command set gives them access to its
 * mailboxes. Every check comes before the first change. Source: reference/iwarp-interface.md.
 */
import {
  CloseTcp,
  CommandStatus,
  OpenTcp,
  streamBytesMax,
  streamMailbox,
  tcpContext,
} from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, type OutImmediate, reject, type Steps } from '../../commands/index.ts';
import { CardConnection, type Listener, type TcpControl, type TcpOpening } from '../tcp/index.ts';

/** Parts of the card that the commands use. */
interface TcpCommandParts {
  readonly tcp: TcpControl;
  readonly portCount: number;
  readonly domain: { readonly cycle: number };
}

/** The mailboxes of a command. */
export interface Mailboxes {
  readIn(lengthBytes: number): Steps<Uint8Array>;
  writeOut(bytes: Uint8Array): Steps<void>;
}

/** One of these commands. */
export type TcpCommand = (
  parts: TcpCommandParts,
  request: CommandRequest,
  mailboxes: Mailboxes,
) => Steps<OutImmediate | undefined> | OutImmediate | undefined;

const scaleMax = 14;
/** Linux: tcp_min_snd_mss. */
const segmentBytesMin = 48;
const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] as const;

export const openTcp: TcpCommand = function* (parts, request, mailboxes) {
  const { opcodeModifier } = request;
  demand(opcodeModifier === OpenTcp.CONNECT || opcodeModifier === OpenTcp.LISTEN, CommandStatus.BAD_OP);
  const isListener = opcodeModifier === OpenTcp.LISTEN;
  const bytes = yield* mailboxes.readIn(tcpContext.sizeBytes);
  const opening = tcpContext.decode(bytes);
  checkOpening(parts, opening, isListener);
  const result = isListener ? parts.tcp.listen(opening, bytes) : parts.tcp.open(opening, bytes);
  if (result === 'inUse') reject(CommandStatus.BAD_PARAM);
  if (result === 'noNumber') reject(CommandStatus.BAD_RESOURCE);
  return { high: 0, low: result };
};

export const closeTcp: TcpCommand = (parts, request) => {
  const { tcp, domain } = parts;
  const row = rowOf(parts, request);
  switch (request.opcodeModifier) {
    case CloseTcp.RELEASE:
      demand(!(row instanceof CardConnection) || row.isEndReported, CommandStatus.BAD_RES_STATE);
      tcp.release(row);
      return undefined;
    case CloseTcp.ORDERLY:
      tcp.finish(connectionOf(row), domain.cycle);
      return undefined;
    case CloseTcp.ABORT:
      tcp.abort(connectionOf(row));
      return undefined;
    case CloseTcp.TERMINATE: {
      const { stream } = connectionOf(row);
      demand(stream !== undefined, CommandStatus.BAD_RES_STATE);
      demand(request.inParamHigh === 0 && request.inParamLow <= 0xffff, CommandStatus.BAD_PARAM);
      stream.terminateRequested(request.inParamLow, domain.cycle);
      return undefined;
    }
    default:
      return reject(CommandStatus.BAD_OP);
  }
};

export const sendTcp: TcpCommand = function* (parts, request, mailboxes) {
  rowOf(parts, request);
  const bytes = yield* mailboxes.readIn(streamMailbox.sizeBytes);
  const lengthBytes = streamMailbox.fields.lengthBytes.get(viewOf(bytes), 0);
  demand(lengthBytes > 0 && lengthBytes <= streamBytesMax, CommandStatus.BAD_PARAM);
  const connection = connectionOf(rowOf(parts, request));
  demand(connection.qpn === 0 && connection.canQueue, CommandStatus.BAD_RES_STATE);
  const isSent = parts.tcp.send(connection, bytes.subarray(streamBytesAt, streamBytesAt + lengthBytes));
  demand(isSent, CommandStatus.EXCEED_LIM);
  return undefined;
};

export const receiveTcp: TcpCommand = function* (parts, request, mailboxes) {
  const connection = connectionOf(rowOf(parts, request));
  const { state, qpn } = connection;
  demand(qpn === 0 && state !== 'SYN_SENT' && state !== 'SYN_RECEIVED', CommandStatus.BAD_RES_STATE);
  const bytes = new Uint8Array(streamMailbox.sizeBytes);
  const lengthBytes = parts.tcp.receive(connection, bytes.subarray(streamBytesAt));
  streamMailbox.fields.lengthBytes.set(viewOf(bytes), 0, lengthBytes);
  yield* mailboxes.writeOut(bytes);
  return undefined;
};

export const queryTcp: TcpCommand = function* (parts, request, mailboxes) {
  yield* mailboxes.writeOut(parts.tcp.contextOf(rowOf(parts, request)));
  return undefined;
};

const streamBytesAt = streamMailbox.fields.bytes.field.offset;

const rowOf = ({ tcp }: TcpCommandParts, { inputModifier }: CommandRequest): CardConnection | Listener =>
  tcp.rowOf(inputModifier) ?? reject(CommandStatus.BAD_RESOURCE);

/** A listener has no stream. */
const connectionOf = (row: CardConnection | Listener): CardConnection =>
  row instanceof CardConnection ? row : reject(CommandStatus.BAD_RES_STATE);

function checkOpening({ tcp, portCount }: TcpCommandParts, opening: TcpOpening, isListener: boolean): void {
  const { port, localPort, remotePort, receiveScale, receiveWindowBytes, maxSegmentBytes } = opening;
  const isIpv6 = opening.isIpv6 === 1;
  const legal = (condition: boolean): void => demand(condition, CommandStatus.BAD_PARAM);
  // The cable is that of port 1.
  legal(port === 1 && port <= portCount);
  legal(localPort > 0);
  legal(receiveScale <= scaleMax);
  legal(maxSegmentBytes >= segmentBytesMin && maxSegmentBytes <= tcp.segmentBytesMax(isIpv6));
  legal(receiveWindowBytes >= maxSegmentBytes && receiveWindowBytes <= 0xffff * 2 ** receiveScale);
  if (isListener) {
    legal(remotePort === 0 && isZero(opening.remoteAddress));
    legal(isZero(opening.localAddress) || isMapped(opening.localAddress) !== isIpv6);
    return;
  }
  legal(remotePort > 0);
  for (const address of [opening.localAddress, opening.remoteAddress])
    legal(!isZero(address) && isMapped(address) !== isIpv6);
}

const isZero = (address: Uint8Array): boolean => address.every((byte) => byte === 0);
const isMapped = (address: Uint8Array): boolean =>
  mappedPrefix.every((byte, index) => address[index] === byte);
