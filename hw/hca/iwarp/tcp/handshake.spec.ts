/** Connections of two cards over a cable: handshake, streams of software, ends. Expected values are of RFC 9293 unless a title names another. */
import { describe, expect, it } from 'vitest';
import { TcpBench } from '../testing/tcp-bench.ts';

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 7 + seed * 31 + (index >> 8)) & 0xff);

describe('a connection between two cards', () => {
  it('is established and reported at both ends, and carries bytes both ways', async () => {
    const bench = await TcpBench.open();
    const { client, server } = await bench.connected();
    expect(bench.a.eventsOf(client)).toEqual(['ESTABLISHED']);
    expect(bench.b.eventsOf(server)).toEqual(['ACCEPTED']);
    expect((await bench.send(bench.a, client, bytesOf(1024))).status).toBe(0);
    expect(await bench.receiveAll(bench.b, server, 1024)).toEqual(bytesOf(1024));
    await bench.send(bench.b, server, bytesOf(500, 2));
    expect(await bench.receiveAll(bench.a, client, 500)).toEqual(bytesOf(500, 2));
    expect(bench.imbalances()).toEqual([]);
  });
});
