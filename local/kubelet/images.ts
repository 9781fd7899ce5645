import type { Image, Images } from './types.ts';

/** Returns the reference without tag and digest, which is the key of images. */
export function repository(reference: string): string {
  const undigested = reference.split('@', 1)[0]!;
  const colon = undigested.lastIndexOf(':');
  return colon > undigested.lastIndexOf('/') ? undigested.slice(0, colon) : undigested;
}

/** Returns the image of a reference; undefined for an image that this machine does not have. */
export function findImage(images: Images, reference: string): Image | undefined {
  return Object.hasOwn(images, repository(reference)) ? images[repository(reference)] : undefined;
}

/** Returns the error of a container runtime for an image that no registry has. */
export function pullError(reference: string): string {
  return (
    `failed to pull and unpack image "${reference}": not found: the embedded cluster pulls no images; ` +
    'its images are programs of this machine, named in its configuration'
  );
}
