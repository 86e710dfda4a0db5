/** `hca compare --networks`: the RDMA paths on several networks side by side. */
import { describe, expect, it, vi } from 'vitest';
import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { hca } from '../testing/in-process.ts';

vi.setConfig({ testTimeout: 240_000 });

const iwarp = ['--set', 'hca.capability.linkLayer=ethernet', '--set', 'hca.capability.transport=iwarp'];
const small = ['--sizes', '1K', '--count', '4'];

describe('several networks', () => {
  it('have a row for each network of an RDMA path, and one for kernel sockets', async () => {
    const words = ['compare', ...small, '--paths', 'sockets,write', '--networks', 'iwarp,roce-v2,infiniband'];
    const { code, out, err } = await hca(...words);
    expect([code, err]).toEqual([0, '']);
    const rows = out.split('\n').filter((line) => /^│ (NIC, sockets|RDMA WRITE)/.test(line));
    expect(rows.map((line) => line.split('│')[1]!.trim()).slice(0, 4)).toEqual([
      'NIC, sockets',
      'RDMA WRITE, InfiniBand',
      'RDMA WRITE, RoCE v2',
      'RDMA WRITE, iWARP',
    ]);
    expect(out).toMatch(/│ +cable │ +on the cable │ on it per byte │/);
    // 4 × 1024 bytes, each message one packet: LRH 8, BTH 12, RETH 16, ICRC 4, VCRC 2, SDP and EGP 2.
    expect(rows[1]).toMatch(/│ 32 Gb\/s │ 4,272 \/ /);
    expect(rows[0]).toContain('│ 10 Gb/s │');
    expect(out).toContain('RDMA WRITE is timed until a READ of no bytes after it is answered');
  });

  it('are named in the rows of the JSON; other comparisons name none, and count no bytes on the cable', async () => {
    const rowsOf = async (...words: string[]): Promise<CompareRow[]> =>
      JSON.parse((await hca('compare', ...small, '--paths', 'send', ...words, '--json', '-')).out).rows;
    const rows = await rowsOf('--networks', 'roce-v1,iwarp');
    expect(rows.map(({ path, network }) => [path, network])).toEqual([
      ['send', 'roce-v1'],
      ['send', 'iwarp'],
    ]);
    for (const { cable } of rows) expect(cable).toMatchObject({ bytesPerSecond: 1.25e9 });
    for (const row of await rowsOf(...iwarp)) {
      expect(row.isEqual).toBe(true);
      expect(Object.keys(row)).not.toContain('network');
      expect(Object.keys(row)).not.toContain('cable');
    }
  });

  it.each([
    [
      ['--networks', 'iwrap'],
      'network is "iwrap", expected one of infiniband, roce-v1, roce-v2, iwarp; did you mean iwarp?',
    ],
    [
      [
        '--networks',
        'iwarp',
        '--set',
        'hca.capability.transport=iwarp',
        '--set',
        'hca.capability.linkLayer=ethernet',
      ],
      'hca.capability.linkLayer is "ethernet", expected left out with --networks',
    ],
  ])('answers %j with one line and exit code 2, before anything has run', async (words, text) => {
    const { code, out, err } = await hca('compare', ...words);
    expect([code, out, err.trim().split('\n').length]).toEqual([2, '', 1]);
    expect(err).toContain(text);
  });
});

it('a comparison over iWARP alone has the same bytes on both sides, and says when a WRITE ends', async () => {
  const { code, out, err } = await hca(
    'compare',
    '--sizes',
    '1,64K',
    '--count',
    '3',
    '--paths',
    'send,write,read',
    ...iwarp,
  );
  expect([code, err]).toEqual([0, '']);
  expect(out).not.toContain('DIFFERENT');
  expect(out).toContain('RFC 5040, 5.1');
});
