import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { moduleClosure } from './modules.ts';

let folder: string;

/** Tables as depmod writes them: modules.dep(5). */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'modules-'));
  const table = [
    'kernel/net/ne2k-pci.ko: kernel/net/8390.ko',
    'kernel/net/8390.ko:',
    'kernel/hw/mlx4_ib.ko.xz: kernel/core/ib_uverbs.ko.xz kernel/hw/mlx4_core.ko.xz',
    'kernel/core/ib_uverbs.ko.xz:',
    'kernel/hw/mlx4_core.ko.xz:',
    '',
  ];
  writeFileSync(join(folder, 'modules.dep'), table.join('\n'));
  writeFileSync(join(folder, 'modules.builtin'), 'kernel/drivers/virtio-pci.ko\n');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the modules of an image', () => {
  it('are those named, by the names that the kernel prints, and those that they depend on', () => {
    const names = { modules: ['ne2k_pci', 'virtio_pci'], optionalModules: ['mlx4_ib'] };
    expect(moduleClosure(folder, names)).toEqual([
      'kernel/core/ib_uverbs.ko.xz',
      'kernel/hw/mlx4_core.ko.xz',
      'kernel/hw/mlx4_ib.ko.xz',
      'kernel/net/8390.ko',
      'kernel/net/ne2k-pci.ko',
    ]);
  });

  it('are refused if the kernel lacks one, unless it is optional', () => {
    expect(() => moduleClosure(folder, { modules: ['rdma_rxe'], optionalModules: [] })).toThrow(/"rdma_rxe"/);
    expect(moduleClosure(folder, { modules: ['8390'], optionalModules: ['rdma_rxe'] })).toEqual([
      'kernel/net/8390.ko',
    ]);
  });
});
