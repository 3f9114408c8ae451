// SPDX-License-Identifier: MIT
#ifndef ATTNCL_EXPORT_H
#define ATTNCL_EXPORT_H
#if defined(_WIN32) && !defined(ATTNCL_STATIC)
#ifdef ATTNCL_BUILDING
#define ATTNCL_API __declspec(dllexport)
#else
#define ATTNCL_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define ATTNCL_API __attribute__((visibility("default")))
#else
#define ATTNCL_API
#endif
#ifdef __cplusplus
#define ATTNCL_BEGIN extern "C" {
#define ATTNCL_END   }
#else
#define ATTNCL_BEGIN
#define ATTNCL_END
#endif
#endif
