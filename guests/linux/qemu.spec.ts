import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { type QemuOptions, qemuCommandLine } from './qemu.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'qemu-tree-'));
  mkdirSync(join(root, 'usr/lib/x86_64-linux-gnu'), { recursive: true });
  writeFileSync(join(root, 'usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2'), '');
});
afterEach(() => rmSync(root, { recursive: true }));

const options = (changes: Partial<QemuOptions> = {}): QemuOptions => ({
  qemuRoot: root,
  kernel: '/k/vmlinuz',
  initramfs: '/k/image.cpio',
  name: 'guest0',
  memoryMib: 1024,
  cpus: 2,
  adapters: ['/run/hca.0', '/run/hca.1'],
  agentSocket: '/run/agent',
  network: undefined,
  kernelParameters: [],
  ...changes,
});

/** The argument after each occurrence of an option. */
function valuesOf(option: string, changes: Partial<QemuOptions> = {}): string[] {
  const { arguments: all } = qemuCommandLine(options(changes));
  return all.flatMap((argument, index) => (argument === option ? [all[index + 1]!] : []));
}

describe("QEMU's command line", () => {
  it('runs QEMU with the loader of its own tree', () => {
    const { file, arguments: all } = qemuCommandLine(options());
    expect(file).toBe(join(root, 'usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2'));
    expect(all).toContain(join(root, 'usr/bin/qemu-system-x86_64'));
    rmSync(join(root, 'usr'), { recursive: true });
    expect(() => qemuCommandLine(options())).toThrow(ConfigurationError);
  });

  it('gives the guest memory that a device server can map', () => {
    expect(valuesOf('-object')).toEqual(['memory-backend-memfd,id=memory,size=1024M,share=on']);
    expect(valuesOf('-machine')).toEqual(['q35,memory-backend=memory']);
  });

  it('names a model of the processors only if one was chosen', () => {
    expect(valuesOf('-cpu')).toEqual([]);
    expect(valuesOf('-cpu', { cpuModel: 'max' })).toEqual(['max']);
  });

  it('gives each adapter its own root port', () => {
    const [firstPort, first, secondPort, second] = valuesOf('-device');
    expect([firstPort, secondPort]).toEqual([
      'pcie-root-port,id=slot0,chassis=1,slot=1',
      'pcie-root-port,id=slot1,chassis=2,slot=2',
    ]);
    const device = { driver: 'vfio-user-pci', bus: 'slot0', socket: { type: 'unix', path: '/run/hca.0' } };
    expect(JSON.parse(first!)).toEqual(device);
    expect(JSON.parse(second!)).toMatchObject({ bus: 'slot1', socket: { path: '/run/hca.1' } });
  });

  it('connects a guest and the simulated host next to it at the rendezvous port of stock programs, and to nothing else', () => {
    const ports = { meetingPort: 18515, toGuestPort: 4001, fromGuestPort: 4002 };
    const [end] = valuesOf('-netdev', { network: { ...ports, busybox: "/a, b's/busybox" } });
    // Two commas mean one, and words are split like a shell's.
    expect(end).toBe(
      'user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:4001-10.0.2.15:18515,' +
        "guestfwd=tcp:10.0.2.100:18515-cmd:'/a,, b'\\''s/busybox' nc 127.0.0.1 4002",
    );
  });

  it('lets the second of two guests wait for the first one’s network', () => {
    const network = (isServer: boolean) =>
      valuesOf('-netdev', { network: { socket: '/run/net', isServer } })[0];
    expect(network(true)).toBe('stream,id=net,server=on,addr.type=unix,addr.path=/run/net');
    expect(network(false)).toContain('server=off,addr.type=unix,addr.path=/run/net,reconnect-ms=');
  });

  it('ends with the process that started it', () => {
    expect(valuesOf('-run-with')).toEqual(['exit-with-parent=on']);
  });
});
