import { describe, expect, it } from 'vitest';
import { guestFiles } from '../kernel-choice.ts';
import { silentProgress } from '../progress.ts';
import { withoutConst } from './soft-iwarp.ts';

describe('Soft-iWARP of a kernel', () => {
  it('has variables where the sources of Linux 6.1 have constants, in the header and in the driver', () => {
    const driver = 'const bool zcopy_tx = true;\nconst bool mpa_crc_required;\nconst bool peer_to_peer;\n';
    expect(withoutConst(driver)).toBe(
      'const bool zcopy_tx = true;\nbool mpa_crc_required;\nbool peer_to_peer;\n',
    );
    expect(withoutConst('extern const bool mpa_crc_required;\nextern const bool peer_to_peer;\n')).toBe(
      'extern bool mpa_crc_required;\nextern bool peer_to_peer;\n',
    );
  });

  it('is refused for sources without one of the constants, by its name', () => {
    expect(() => withoutConst('const bool mpa_crc_required;')).toThrow(/peer_to_peer/);
  });

  it("is refused for a kernel of the user's own, before anything is fetched", async () => {
    const cache = { folder: '/nonexistent', mirror: undefined, progress: silentProgress };
    await expect(guestFiles({ kernel: '/', hasSoftIwarp: true }, cache)).rejects.toThrow(
      /debian, backports with Soft-iWARP/,
    );
  });
});
