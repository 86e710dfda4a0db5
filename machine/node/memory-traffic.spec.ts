import { expect, it } from 'vitest';
import type { HostNode } from './host-node.ts';
import { memoryTrafficOf } from './memory-traffic.ts';

it('counts each page that the processor copies once as read and once as written, for every purpose', () => {
  const counts = { zeroedPages: 1, copiedPages: 2, forkCopiedPages: 4, migratedPages: 8 };
  const paged = { swappedInPages: 16, swappedOutPages: 32, filePagesRead: 64, filePagesWritten: 128 };
  const node = {
    host: { mm: { counts: { ...counts, ...paged } } },
    rootComplex: { reads: { readBytes: 0 }, writes: { writtenBytes: 0 } },
    userCopies: { count: 0, bytes: 0 },
  } as unknown as HostNode;
  const { zeroing, pageCopies, paging, total } = memoryTrafficOf(node);
  expect([zeroing, pageCopies, paging]).toEqual(
    [1, 2 * (2 + 4 + 8), 16 + 32 + 64 + 128].map((pages) => 4096 * pages),
  );
  expect(total).toBe(zeroing + pageCopies + paging);
});
