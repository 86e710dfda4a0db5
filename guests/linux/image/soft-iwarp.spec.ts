import { describe, expect, it } from 'vitest';
import { guestFiles } from '../kernel-choice.ts';
import { silentProgress } from '../progress.ts';
import { withoutConst } from './soft-iwarp.ts';

describe('Soft-iWARP of a kernel', () => {
  it('has variables where the sources of Linux 6.1 have constants, in the header and in the driver', () => {
    const [crc, strict, mode] = ['bool mpa_crc_required;', 'bool mpa_crc_strict;', 'bool peer_to_peer;'];
    const zerocopy = 'const bool zcopy_tx = true;';
    expect(withoutConst(`${zerocopy}\nconst ${crc}\nconst ${strict}\nconst ${mode}\n`)).toBe(
      `${zerocopy}\n${crc}\n${strict}\n${mode}\n`,
    );
    expect(withoutConst(`extern const ${crc}\nextern const ${strict}\nextern const ${mode}\n`)).toBe(
      `extern ${crc}\nextern ${strict}\nextern ${mode}\n`,
    );
  });

  it('is refused for sources without one of the constants, by its name', () => {
    expect(() => withoutConst('const bool mpa_crc_required; const bool mpa_crc_strict;')).toThrow(
      /peer_to_peer/,
    );
  });

  it("is refused for a kernel of the user's own, before anything is fetched", async () => {
    const cache = { folder: '/nonexistent', mirror: undefined, progress: silentProgress };
    await expect(guestFiles({ kernel: '/', hasSoftIwarp: true }, cache)).rejects.toThrow(
      /debian, backports with Soft-iWARP/,
    );
  });
});
