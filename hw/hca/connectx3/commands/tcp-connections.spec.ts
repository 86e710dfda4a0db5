/** The commands and events of TCP connections as software issues and reads them. Source: reference/iwarp-interface.md. */
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { qpcOffsetInMailbox, qpMailbox } from '../../../../abi/qpc.ts';
import { queryDevCap } from '../../../../abi/query-dev-cap.ts';
import {
  CloseTcp,
  iwarpContext,
  iwarpOffsetInQpc,
  OpenTcp,
  streamMailbox,
  TcpEvent,
  TcpState,
  tcpContext,
  tcpEqe,
} from '../../../../abi/tcp-connection.ts';
import type { Initial } from '../../../../base/index.ts';
import { iwarpDevice, tcpDevice, tcpProfile } from '../../iwarp/testing/tcp-device.ts';
import {
  broughtUp,
  bufferAddress,
  createCq,
  createEq,
  firstCqn,
  firstQpn,
  initMailbox,
  must,
} from '../../testing/bring-up.ts';
import type { ControlBench } from '../../testing/control-bench.ts';

const { BAD_OP, BAD_PARAM, BAD_RES_STATE, BAD_RESOURCE, OK } = CommandStatus;
const mapped = (last: number): Uint8Array =>
  Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last);
const linkLocal = (last: number): Uint8Array =>
  Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);
const zeros = new Uint8Array(16);

const opening: Initial<typeof tcpContext> = {
  ...{ port: 1, cookie: 0xc00c_1e55, hopLimit: 64, maxSegmentBytes: 1460, synRetries: 6, dataRetries: 15 },
  ...{ receiveWindowBytes: 0x4_0000, receiveScale: 3, remoteMac: Uint8Array.of(2, 0, 0, 0, 0, 9) },
  ...{ localAddress: mapped(1), remoteAddress: mapped(2), localPort: 0x8000, remotePort: 7 },
};
const listening: Initial<typeof tcpContext> = {
  ...opening,
  ...{ localAddress: zeros, remoteAddress: zeros, localPort: 7, remotePort: 0, backlog: 8 },
};

const open = (bench: ControlBench, changes: Initial<typeof tcpContext> = {}) =>
  bench.command('OPEN_TCP', { inBox: tcpContext.encode({ ...opening, ...changes }) });
const listen = (bench: ControlBench, changes: Initial<typeof tcpContext> = {}) =>
  bench.command('OPEN_TCP', {
    inBox: tcpContext.encode({ ...listening, ...changes }),
    opcodeModifier: OpenTcp.LISTEN,
  });
const close = (bench: ControlBench, inputModifier: number, opcodeModifier: number) =>
  bench.command('CLOSE_TCP', { inputModifier, opcodeModifier });

describe('a card with iWARP', () => {
  it('says so, the size of an entry of its table and the most connections', () => {
    const bench = iwarpDevice({ logMaxTcpConnections: 10 });
    const report = queryDevCap.decode(
      must(bench, 'QUERY_DEV_CAP', { outBytes: queryDevCap.sizeBytes }).outBox,
    );
    expect(report).toMatchObject({ auxcEntryBytes: 256, logMaxTcpConnections: 10 });
    expect(report.extendedFlags >>> 31).toBe(1);
    const other = broughtUp();
    const its = queryDevCap.decode(must(other, 'QUERY_DEV_CAP', { outBytes: queryDevCap.sizeBytes }).outBox);
    expect(its).toMatchObject({ auxcEntryBytes: 64, logMaxTcpConnections: 0 });
    expect(its.extendedFlags >>> 31).toBe(0);
  });

  it('refuses more connections than it has offered', () => {
    const bench = iwarpDevice({ logMaxTcpConnections: 10 });
    expect(bench.command('INIT_HCA', { inBox: tcpProfile(11) }).status).toBe(BAD_PARAM);
    expect(bench.command('INIT_HCA', { inBox: tcpProfile(10) }).status).toBe(OK);
  });

  it('opens none if software has named none', () => {
    const bench = iwarpDevice();
    must(bench, 'INIT_HCA', { inBox: tcpProfile(0) });
    expect(open(bench).status).toBe(BAD_RESOURCE);
  });

  it('has commands that other cards do not know', () => {
    const bench = broughtUp();
    for (const name of ['OPEN_TCP', 'CLOSE_TCP', 'SEND_TCP', 'RECEIVE_TCP', 'QUERY_TCP'] as const)
      expect(bench.command(name, { inputModifier: 1 }).status).toBe(BAD_OP);
  });
});

describe('OPEN_TCP', () => {
  it('chooses numbers from 1 on, for connections and listeners alike, until none is free', () => {
    const bench = tcpDevice();
    expect(listen(bench)).toMatchObject({ status: OK, out: 1 });
    for (let number = 2; number < 16; number++)
      expect(open(bench, { localPort: 0x8000 + number })).toMatchObject({ status: OK, out: number });
    expect(open(bench).status).toBe(BAD_RESOURCE);
    expect(listen(bench, { localPort: 8 }).status).toBe(BAD_RESOURCE);
    expect(close(bench, 1, CloseTcp.RELEASE).status).toBe(OK);
    expect(open(bench)).toMatchObject({ status: OK, out: 1 });
  });

  it.each<[string, Initial<typeof tcpContext>]>([
    ['a port that the card does not have', { port: 2 }],
    ['no port of the card', { port: 0 }],
    ['local port 0', { localPort: 0 }],
    ['remote port 0', { remotePort: 0 }],
    ['a scale of 15 (RFC 7323, 2.3)', { receiveScale: 15 }],
    ['segments of fewer than 48 bytes', { maxSegmentBytes: 47 }],
    ['segments that no frame holds', { maxSegmentBytes: 1461 }],
    ['a window beyond its scale', { receiveWindowBytes: 0xffff * 8 + 1 }],
    ['a window of less than a segment', { receiveWindowBytes: 1459 }],
    ['an IPv6 address for IPv4', { remoteAddress: linkLocal(2) }],
    ['an IPv4 address for IPv6', { isIpv6: 1, localAddress: linkLocal(1), maxSegmentBytes: 1440 }],
    ['no address', { localAddress: zeros }],
    [
      'segments of IPv6 that no frame holds',
      { isIpv6: 1, localAddress: linkLocal(1), remoteAddress: linkLocal(2) },
    ],
  ])('refuses %s', (_, changes) => {
    const bench = tcpDevice();
    expect(open(bench, changes).status).toBe(BAD_PARAM);
    expect(open(bench)).toMatchObject({ status: OK, out: 1 });
  });

  it('refuses the addresses and ports of another connection, the port of another listener, and a listener with a peer', () => {
    const bench = tcpDevice();
    open(bench);
    listen(bench);
    expect(open(bench).status).toBe(BAD_PARAM);
    expect(listen(bench).status).toBe(BAD_PARAM);
    expect(listen(bench, { localPort: 9, remotePort: 1 }).status).toBe(BAD_PARAM);
    expect(listen(bench, { localPort: 9, remoteAddress: mapped(2) }).status).toBe(BAD_PARAM);
    expect(listen(bench, { localPort: 9, localAddress: linkLocal(1) }).status).toBe(BAD_PARAM);
    expect(bench.command('OPEN_TCP', { inBox: tcpContext.encode(opening), opcodeModifier: 2 }).status).toBe(
      BAD_OP,
    );
    expect(bench.command('OPEN_TCP', { inParam: 0x123 }).status).toBe(BAD_PARAM);
  });

  it('has no number for a connection whose context has no memory', () => {
    const bench = iwarpDevice();
    // The table, 2^12 entries of 256 bytes, extends beyond the mapped pages.
    must(bench, 'INIT_HCA', { inBox: tcpProfile(12) });
    let opened = 0;
    while (opened < 600 && open(bench, { localPort: 0x4000 + opened }).status === OK) opened++;
    // The range from 0x2_0000 to the end of the chunk of 64 pages has 512 entries, of which the first is unused.
    expect(opened).toBe(511);
  });
});

describe('QUERY_TCP', () => {
  it('returns the context of a connection and of a listener', () => {
    const bench = tcpDevice();
    open(bench);
    listen(bench);
    const query = (inputModifier: number) =>
      tcpContext.decode(must(bench, 'QUERY_TCP', { inputModifier, outBytes: 256 }).outBox);
    expect(query(1)).toMatchObject({
      ...{ state: TcpState.SYN_SENT, cookie: 0xc00c_1e55, remotePort: 7, maxSegmentBytes: 1460, qpn: 0 },
    });
    expect(query(2)).toMatchObject({ state: TcpState.LISTEN, localPort: 7, backlog: 8 });
    expect(bench.command('QUERY_TCP', { inputModifier: 3, outBytes: 256 }).status).toBe(BAD_RESOURCE);
  });
});

describe('INIT2RTR', () => {
  const toRtr = (bench: ControlBench, values: Initial<typeof iwarpContext>, logMaxMessage = 30) => {
    const box = qpMailbox.encode({ context: { logMaxMessage } });
    box.set(iwarpContext.encode(values), qpcOffsetInMailbox + iwarpOffsetInQpc);
    return bench.command('INIT2RTR_QP', { inputModifier: firstQpn, inBox: box }).status;
  };

  it('refuses numbers without a connection, listeners, connections that are not established, more READs than are offered', () => {
    const bench = tcpDevice();
    const eqn = createEq(bench, 0);
    createCq(bench, 1, eqn);
    must(bench, 'RST2INIT_QP', { inputModifier: firstQpn, inBox: initMailbox(firstCqn + 1) });
    open(bench);
    listen(bench);
    expect(toRtr(bench, { connection: 3 })).toBe(BAD_RESOURCE);
    expect(toRtr(bench, { connection: 2 })).toBe(BAD_RES_STATE);
    expect(toRtr(bench, { connection: 1 })).toBe(BAD_RES_STATE);
    expect(toRtr(bench, { connection: 1, inboundReads: 17 })).toBe(BAD_PARAM);
    expect(toRtr(bench, { connection: 1, outboundReads: 129 })).toBe(BAD_PARAM);
    expect(toRtr(bench, { connection: 1 }, 31)).toBe(BAD_PARAM);
  });
});

describe('CLOSE_TCP, SEND_TCP and RECEIVE_TCP', () => {
  const send = (bench: ControlBench, inputModifier: number, lengthBytes = 5) =>
    bench.command('SEND_TCP', {
      inputModifier,
      inBox: streamMailbox.encode({ lengthBytes, bytes: new Uint8Array(1024) }),
    });
  const receive = (bench: ControlBench, inputModifier: number) =>
    bench.command('RECEIVE_TCP', { inputModifier, outBytes: 16 });

  it('refuse numbers of nothing, listeners, and connections that are not established', () => {
    const bench = tcpDevice();
    open(bench);
    listen(bench);
    expect([send(bench, 3), receive(bench, 3), close(bench, 3, 0)].map(({ status }) => status)).toEqual([
      BAD_RESOURCE,
      BAD_RESOURCE,
      BAD_RESOURCE,
    ]);
    expect([send(bench, 1), receive(bench, 1)].map(({ status }) => status)).toEqual([
      BAD_RES_STATE,
      BAD_RES_STATE,
    ]);
    expect([send(bench, 2), receive(bench, 2)].map(({ status }) => status)).toEqual([
      BAD_RES_STATE,
      BAD_RES_STATE,
    ]);
    expect(close(bench, 2, CloseTcp.ORDERLY).status).toBe(BAD_RES_STATE);
    expect(close(bench, 2, CloseTcp.ABORT).status).toBe(BAD_RES_STATE);
    expect(close(bench, 1, CloseTcp.TERMINATE).status).toBe(BAD_RES_STATE);
    expect(close(bench, 1, 4).status).toBe(BAD_OP);
    expect(send(bench, 1, 0).status).toBe(BAD_PARAM);
    expect(send(bench, 1, 1025).status).toBe(BAD_PARAM);
  });

  it('end a connection, which has its number until the event of its end and RELEASE', () => {
    const bench = tcpDevice();
    const eqn = createEq(bench, 0);
    must(bench, 'MAP_EQ', { inputModifier: eqn, inParam: 2 ** 48 });
    open(bench);
    expect(close(bench, 1, CloseTcp.RELEASE).status).toBe(BAD_RES_STATE);
    expect(close(bench, 1, CloseTcp.ABORT).status).toBe(OK);
    bench.run(2000);
    const event = tcpEqe.decode(bench.memory.read(bufferAddress(0), 32));
    expect(event).toMatchObject({
      type: 0x30,
      subtype: TcpEvent.RESET,
      connection: 1,
      cookie: 0xc00c_1e55,
      listener: 0,
    });
    expect(close(bench, 1, CloseTcp.RELEASE).status).toBe(OK);
    expect(close(bench, 1, CloseTcp.RELEASE).status).toBe(BAD_RESOURCE);
  });

  it('end at once what is not established yet, also in good order', () => {
    const bench = tcpDevice();
    const eqn = createEq(bench, 0);
    must(bench, 'MAP_EQ', { inputModifier: eqn, inParam: 2 ** 48 });
    open(bench);
    expect(close(bench, 1, CloseTcp.ORDERLY).status).toBe(OK);
    bench.run(2000);
    expect(tcpEqe.decode(bench.memory.read(bufferAddress(0), 32)).subtype).toBe(TcpEvent.RESET);
  });
});
