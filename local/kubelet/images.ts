import type { Image, Images } from './types.ts';

/** The reference without tag and digest: what images are looked up by. */
export function repository(reference: string): string {
  const undigested = reference.split('@', 1)[0]!;
  const colon = undigested.lastIndexOf(':');
  return colon > undigested.lastIndexOf('/') ? undigested.slice(0, colon) : undigested;
}

/** What the reference stands for, or undefined: an image this machine does not have. */
export function findImage(images: Images, reference: string): Image | undefined {
  return Object.hasOwn(images, repository(reference)) ? images[repository(reference)] : undefined;
}

/** What a container runtime says of an image that no registry has. */
export function pullError(reference: string): string {
  return (
    `failed to pull and unpack image "${reference}": not found: the embedded cluster pulls no images; ` +
    'its images are programs of this machine, named in its configuration'
  );
}
