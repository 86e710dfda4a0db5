import { describe, expect, it } from 'vitest';
import { packagesToInstall } from './apt.ts';

describe('the packages that apt would install', () => {
  it('are read from its simulation: new packages, upgrades, other architectures, epochs', () => {
    const output = [
      'NOTE: This is only a simulation!',
      'Inst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])',
      'Inst zlib1g (1:1.2.13.dfsg-1 Debian:12.15/oldstable [amd64])',
      'Inst pci.ids [0.0~2022] (0.0~2023.04.11-1 Debian:12.15/oldstable, Debian-Security:12 [all])',
      'Inst libc6:amd64 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64]) []',
      'Inst rdma-core (44.0-2 Debian:12.15/oldstable [i386])',
      'Conf libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])',
    ].join('\n');
    expect(packagesToInstall(output)).toEqual([
      { name: 'libc6', version: '2.36-9+deb12u14', architecture: 'amd64' },
      { name: 'zlib1g', version: '1:1.2.13.dfsg-1', architecture: 'amd64' },
      { name: 'pci.ids', version: '0.0~2023.04.11-1', architecture: 'all' },
      { name: 'libc6', version: '2.36-9+deb12u14', architecture: 'amd64' },
      { name: 'rdma-core', version: '44.0-2', architecture: 'i386' },
    ]);
  });
});
