import { describe, expect, it } from 'vitest';
import { contentsOf } from './contents.ts';

describe('the contents of an image', () => {
  it('have the plug-ins of its architecture', () => {
    expect(contentsOf('i386', 'adapter').plugIns).toContain(
      'usr/lib/i386-linux-gnu/libibverbs/libmlx4-rdmav34.so',
    );
    expect(contentsOf('amd64', 'all').plugIns).toContain(
      'usr/lib/x86_64-linux-gnu/libibverbs/libmlx4-rdmav34.so',
    );
  });

  it('are a part of all contents if they are those of the adapter', () => {
    const [part, all] = [contentsOf('i386', 'adapter'), contentsOf('i386', 'all')];
    expect(all.programs).toEqual(expect.arrayContaining([...part.programs]));
    expect(all.modules).toEqual(expect.arrayContaining([...part.modules]));
    expect(part.programs).not.toContain('usr/sbin/nvme');
    expect(all.programs).toContain('usr/sbin/nvme');
  });

  it('demand no Soft-RoCE of a kernel of 32 bits, which has none with high memory', () => {
    expect(contentsOf('amd64', 'all').modules).toContain('rdma_rxe');
    expect(contentsOf('i386', 'all').modules).not.toContain('rdma_rxe');
    expect(contentsOf('i386', 'all').optionalModules).toContain('rdma_rxe');
  });
});
