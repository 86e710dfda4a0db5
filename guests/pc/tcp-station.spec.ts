/** A station, and the frames of a host at 10.0.2.15: each is written out, with checksums from a computation of its own (RFC 1071). */
import { describe, expect, it } from 'vitest';
import { fromHex, psPerUs, toHex } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import type { StationConnection } from './station-connection.ts';
import { TcpStation } from './tcp-station.ts';

/** From port 40,000 of the host to port 18,515 of the station, or as the name says. */
const fromHost = {
  arpRequest: 'ffffffffffff020000000001080600010800060400010200000000010a00020f0000000000000a000264',
  syn: '0200000000fe02000000000108004500002c000040004006225a0a00020f0a0002649c404853000003e8000000006002faf09c470000020405b40000',
  ack: '0200000000fe020000000001080045000028000040004006225e0a00020f0a0002649c404853000003e90000fa035010faf0b9f00000000000000000',
  hello:
    '0200000000fe02000000000108004500002d00004000400622590a00020f0a0002649c404853000003e90000fa035018faf07611000068656c6c6f00',
  fin: '0200000000fe020000000001080045000028000040004006225e0a00020f0a0002649c404853000003ee0000fa035011faf0b9ea0000000000000000',
  synToPort22:
    '0200000000fe020000000001080045000028000040004006225e0a00020f0a0002649c41001600000005000000005002faf000230000000000000000',
} as const;

const fromStation = {
  arpReply:
    '0200000000010200000000fe080600010800060400020200000000fe0a0002640200000000010a00020f000000000000000000000000000000000000',
  synAck:
    '0200000000010200000000fe08004500003000004000400622560a0002640a00020f48539c400000fa02000003e97012ffff8b1e0000020405b401010101',
  world:
    '0200000000010200000000fe08004500002d00004000400622590a0002640a00020f48539c400000fa03000003ee5018fffa66f80000776f726c6400',
  reset:
    '0200000000010200000000fe080045000028000040004006225e0a0002640a00020f00169c41000000000000000650140000fb000000000000000000',
} as const;

const beginPs = 8 * psPerUs;

function bench() {
  const sent: string[] = [];
  const seen: string[] = [];
  const connections: StationConnection[] = [];
  const station = new TcpStation(
    {
      mac: fromHex('0200000000fe'),
      address: 0x0a00_0264,
      port: 18_515,
      limits: configurationOf({}).net.stack,
    },
    {
      established: (connection) => connections.push(connection),
      arrived: (_, bytes) => seen.push(new TextDecoder().decode(bytes)),
      ended: ({ error = 'no error' }) => seen.push(`ended: ${error}`),
      forgotten: () => seen.push('forgotten'),
    },
  );
  station.onFrame = (frame) => sent.push(toHex(frame));
  const arrives = (frame: string, nowPs = beginPs): void => station.receive(fromHex(frame), nowPs);
  return { station, sent, seen, connections, arrives };
}

function opened() {
  const made = bench();
  made.arrives(fromHost.syn);
  made.arrives(fromHost.ack);
  return made;
}

describe('a station', () => {
  it('answers ARP for its address', () => {
    const { arrives, sent } = bench();
    arrives(fromHost.arpRequest);
    expect(sent).toEqual([fromStation.arpReply]);
  });

  it('accepts a connection to its port, and hands on and sends bytes', () => {
    const { sent, seen, connections, arrives } = opened();
    expect(sent).toEqual([fromStation.synAck]);
    arrives(fromHost.hello);
    connections[0]!.send(new TextEncoder().encode('world'));
    expect(seen).toEqual(['hello']);
    expect(sent.slice(1)).toEqual([fromStation.world]);
  });

  it('hands on bytes once that arrive twice', () => {
    const { seen, arrives } = opened();
    arrives(fromHost.hello);
    arrives(fromHost.hello);
    expect(seen).toEqual(['hello']);
  });

  it('sends unacknowledged bytes again at the instant that it names', () => {
    const { station, sent, connections } = opened();
    connections[0]!.send(new TextEncoder().encode('world'));
    const before = sent.length;
    station.run(station.nextPs - 1);
    expect(sent).toHaveLength(before);
    station.run(station.nextPs);
    expect(sent.slice(before)).toEqual([sent[before - 1]]);
  });

  it('tells the end of the stream, and forgets a connection that both ends have closed', () => {
    const { seen, connections, arrives, sent, station } = opened();
    arrives(fromHost.hello);
    arrives(fromHost.fin);
    expect(seen).toEqual(['hello', 'ended: no error']);
    connections[0]!.finish();
    // FIN and ACK, of the byte before the host's FIN and of that FIN.
    expect(sent.at(-1)!.slice(94, 96)).toBe('11');
    const last = fromHost.fin.replace('000003ee0000fa035011faf0b9ea', '000003ef0000fa045010faf0b9e9');
    arrives(last);
    expect(seen.slice(2)).toEqual(['forgotten']);
    expect(station.nextPs).toBe(Number.POSITIVE_INFINITY);
  });

  it('refuses connections to other ports (RFC 9293, 3.5.2), and all when it is closed', () => {
    const { station, arrives, sent, connections } = bench();
    arrives(fromHost.synToPort22);
    // The reply goes to the sender of the frame: no request for its MAC is needed.
    expect(sent).toEqual([fromStation.reset]);
    station.isOpen = false;
    arrives(fromHost.syn);
    expect(connections).toEqual([]);
    expect(sent[1]!.slice(94, 96)).toBe('14');
  });

  it.each([
    ['checksum', fromHost.hello.replace('68656c6c6f', '68656c6c70')],
    ['address', fromHost.hello.replace('0a000264', '0a000265')],
    ['length', fromHost.hello.slice(0, 60)],
  ])('drops frames with a wrong %s', (_, frame) => {
    const { seen, sent, arrives } = opened();
    arrives(frame);
    expect([seen, sent.length]).toEqual([[], 1]);
  });

  it('asks for the MAC of a host before it connects to it, and reports a host that does not answer', () => {
    const { station, sent, seen } = bench();
    expect(station.connect(0x0a00_020f, 7, beginPs)).toBeDefined();
    expect(sent[0]!.slice(0, 12)).toBe('ffffffffffff');
    station.receive(fromHex(fromHost.arpRequest), beginPs);
    // The SYN, to port 7 of the host.
    expect(sent[1]!.slice(68, 76)).toBe('80000007');
    for (let tries = 0; tries < 20 && seen.length === 0; tries++) station.run(station.nextPs);
    expect(seen).toEqual(['forgotten', 'ended: ETIMEDOUT']);
  });
});
