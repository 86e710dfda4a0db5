import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { renderReport } from '../index.ts';
import { main as everyCable } from './every-cable.ts';
import { main as keyValueLookup } from './key-value-lookup.ts';
import { main as rcPingpong } from './rc-pingpong.ts';
import { main as rdmaCmEcho } from './rdma-cm-echo.ts';
import { main as socketEcho } from './socket-echo.ts';

// Whole simulations, some in worker threads on machines with few cores.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

describe('the examples', () => {
  it('exchange 4 KiB by RC', async () => {
    const { roundTripUs, report } = await rcPingpong(20);
    // Both ways: twice 4096 bytes at 4 GB/s on the cable and four times over PCIe, and no more than twice that.
    expect(roundTripUs).toBeGreaterThan(2 * (4096 / 4000));
    expect(roundTripUs).toBeLessThan(20);
    expect(renderReport(report)).toContain('The ledgers balance');
    expect(renderReport(report)).toContain('host 0: 0 on the data path');
  });

  it('exchange 4 KiB by RC over Ethernet, too', async () => {
    const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
    const { roundTripUs, report } = await rcPingpong(20, { set });
    // At 1.25 GB/s, both ways.
    expect(roundTripUs).toBeGreaterThan(2 * (4096 / 1250));
    expect(report.checks.balanced).toBe(true);
  });

  it('find every key by one-sided READ', async () => {
    const { found, wrong } = await keyValueLookup();
    expect(found).toBeGreaterThan(3900);
    expect(wrong).toBe(0);
  });

  it.each(['infiniband', 'roce', 'iwarp'])(
    'connect by rdma_cm over %s and exchange a message',
    async (network) => {
      const { results, report } = await rdmaCmEcho(network);
      expect(results).toEqual(['echo over a connection', 'hello']);
      expect(renderReport(report)).toContain('The ledgers balance');
    },
  );

  it('connect by sockets and exchange a message', async () => {
    const { results, report } = await socketEcho();
    expect(results).toEqual(['echo over a socket', 18]);
    expect(renderReport(report)).toContain('The ledgers balance');
  });

  it('write by every cable of a ring of four hosts', async () => {
    const report = await everyCable();
    expect(report.checks.balanced).toBe(true);
    // 12 packets of 26 bytes of headers and a RETH of 16 in each third, and 3 acknowledgements of 30 bytes: InfiniBand, volume 1, 5.2.
    const bytes = 3 * (4096 + 4 * 26 + 16 + 30);
    expect(report.wire.map((cable) => cable.bytes)).toEqual(Array(8).fill(bytes));
  });

  it('are short enough to be read at one sitting', () => {
    for (const name of [
      'rc-pingpong.ts',
      'key-value-lookup.ts',
      'rdma-cm-echo.ts',
      'socket-echo.ts',
      'guest-pingpong.ts',
      'every-cable.ts',
    ]) {
      const lines = readFileSync(new URL(name, import.meta.url), 'utf8').split('\n');
      expect(lines.length, name).toBeLessThan(150);
    }
  });
});
